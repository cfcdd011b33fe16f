#ifndef TIERCEL_OFFLOAD_RETRIEVAL_SCORER_H_
#define TIERCEL_OFFLOAD_RETRIEVAL_SCORER_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/device/device_memory.h"
#include "kernels/device/stream.h"
#include "offload/kv/layered_kv.h"

namespace tiercel {

// Scores the chunks of a layer for a query row, as attention scores single
// keys, and keeps what it needs for that. Chunks are counted as by a Selector.
class Scorer {
 public:
  // A query row, and the chunks first <= c < last that are to be scored.
  struct Question {
    DevicePtr<const float> q;  // [heads, head_dim], rotated
    int64_t position;          // the row's position
    // The pages of the layer; null where they are not on the device.
    const KvPages* kv;
    int64_t first;
    int64_t last;
  };
  struct Norms {
    DevicePtr<const uint16_t>
        of_first;  // f16 [kv_heads, stride], from chunk 0 on
    int64_t stride;
  };
  virtual ~Scorer() = default;

  // The functions of Selector with these names have the same meaning.
  virtual absl::Status Update(Stream& stream, int layer, const KvPages& kv,
                              int64_t rows) = 0;
  virtual void Truncate(int64_t end) = 0;
  virtual absl::StatusOr<std::unique_ptr<Scorer>> Copy(
      DeviceMemory& memory) const = 0;

  // Writes `scores`: [heads, stride], of each head [last - first]; `stride` is
  // a multiple of 16 and no less than that. Errors: those of the ops.
  virtual absl::Status Score(Stream& stream, int layer, const Question& asked,
                             DevicePtr<float> scores, int64_t stride) = 0;
  // Returns true if chunks are single positions.
  virtual bool OfPositions() const = 0;
  // The norms of the keys, or means, that are scored.
  virtual Norms NormsOf(int layer) const = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_RETRIEVAL_SCORER_H_
