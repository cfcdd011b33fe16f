#ifndef TIERCEL_RUNTIME_SESSION_PLAN_H_
#define TIERCEL_RUNTIME_SESSION_PLAN_H_

#include <cstdint>

#include "models/decoder/config.h"
#include "models/decoder/weights.h"
#include "offload/plan/tier_plan.h"

namespace tiercel {

// Rows of a prompt that pass through a layer at once: as many as fill the
// machine, as few as answer a cancellation within 100 ms.
int64_t PromptRowsAtOnce(int64_t weight_bytes_per_token, int layers);

// Scratch memory that no op of this model exceeds.
int64_t ScratchBytes(const ModelConfig& config, int threads);

// What a session takes of a device that is too small for the whole KV.
// `weights.bytes` is what is there before it.
TierNeeds SessionNeeds(const ModelConfig& config, const WeightSizes& weights,
                       const KvLayout& layout, int64_t context,
                       int64_t first_position, int threads);

// The largest context that `budget` bytes can serve; 0: none.
int64_t LargestContext(const ModelConfig& config, const WeightSizes& weights,
                       const KvLayout& layout, int threads, int64_t budget);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SESSION_PLAN_H_
