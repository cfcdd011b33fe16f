#ifndef TIERCEL_OFFLOAD_VIEW_SCORER_H_
#define TIERCEL_OFFLOAD_VIEW_SCORER_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/machine/device_memory.h"
#include "kernels/machine/stream.h"
#include "offload/kv/layered_kv.h"

namespace tiercel {

// Scores the chunks of a layer for a row, as attention scores single keys, and
// keeps what it needs for that. Chunks are counted as a Chooser counts them.
class Scorer {
 public:
  // A row, and the chunks first <= c < last that it is to score.
  struct Question {
    const float* q;    // [heads, head_dim], rotated
    int64_t position;  // of the row
    // The pages of the layer; null: they are not at hand.
    const KvPages* kv;
    int64_t first;
    int64_t last;
  };
  struct Norms {
    const uint16_t* of_first;  // f16 [kv_heads, stride], from chunk 0 on
    int64_t stride;
  };
  virtual ~Scorer() = default;

  // What Chooser says of the functions of these names.
  virtual absl::Status Update(Stream& stream, int layer, const KvPages& kv,
                              int64_t rows) = 0;
  virtual void Truncate(int64_t end) = 0;
  virtual absl::StatusOr<std::unique_ptr<Scorer>> Copy(
      DeviceMemory& memory) const = 0;

  // [heads, stride], of each [last - first]; `stride` is a multiple of 16 and
  // no less. Errors: those of the ops.
  virtual absl::Status Score(Stream& stream, int layer, const Question& asked,
                             float* scores, int64_t stride) = 0;
  // Chunks are single positions.
  virtual bool OfPositions() const = 0;
  // The lengths of the keys, or means, that are scored.
  virtual Norms NormsOf(int layer) const = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_VIEW_SCORER_H_
