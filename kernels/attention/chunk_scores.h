#ifndef TIERCEL_KERNELS_ATTENTION_CHUNK_SCORES_H_
#define TIERCEL_KERNELS_ATTENTION_CHUNK_SCORES_H_

#include "absl/status/status.h"
#include "kernels/attention/chunk_scores_params.h"
#include "kernels/machine/stream.h"

namespace tiercel {

absl::Status ChunkScores(Stream& stream, const ChunkScoresParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_ATTENTION_CHUNK_SCORES_H_
