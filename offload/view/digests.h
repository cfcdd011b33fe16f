#ifndef TIERCEL_OFFLOAD_VIEW_DIGESTS_H_
#define TIERCEL_OFFLOAD_VIEW_DIGESTS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/machine/device_memory.h"
#include "kernels/machine/stream.h"
#include "offload/kv/kv_store.h"

namespace tiercel {

// The mean of every complete chunk's keys, per layer and KV head, on the device
// wherever the keys themselves are: what a retrieval view is chosen by
// (TriForce, arXiv 2404.11912, section 4.1). f16. Chunk i begins at position
// i * chunk, the first of a sequence may lack its beginning.
class Digests {
 public:
  struct Shape {
    KvLayout layout = {};
    int layers = 0;
    int heads = 0;        // query heads
    int chunk = 32;       // positions; divides kPageTokens
    int64_t begin = 0;    // of the sequence
    int64_t context = 0;  // positions

    int64_t FirstChunk() const { return begin / chunk; }
    int64_t Chunks() const {  // at most
      return (begin + context) / chunk - FirstChunk();
    }
    int64_t Bytes() const {
      return AlignedBytes(layers * layout.kv_heads * Chunks() *
                          layout.head_dim *
                          static_cast<int64_t>(sizeof(uint16_t)));
    }
  };

  // Errors: out_of_memory.
  static absl::StatusOr<Digests> Create(DeviceMemory& memory,
                                        const Shape& shape);
  // A copy that goes its own way from now on. Errors: out_of_memory.
  absl::StatusOr<Digests> Copy(DeviceMemory& memory) const;

  // Digests the chunks of `layer` that the positions kv.end .. kv.end + rows -
  // 1 complete, which have been written.
  absl::Status Update(Stream& stream, int layer, const KvPages& kv,
                      int64_t rows);

  // How much the first `chunks` chunks of the sequence matter to a row with
  // the queries `q` ([heads, head_dim], rotated): [kv_heads, chunks], see
  // ChunkScores.
  absl::Status Score(Stream& stream, int layer, const float* q, int64_t chunks,
                     float* scores) const;

 private:
  Digests(const Shape& shape, DeviceArray<uint16_t> means)
      : shape_(shape), means_(std::move(means)) {}
  int64_t HeadElements() const {
    return shape_.Chunks() * shape_.layout.head_dim;
  }

  Shape shape_;
  DeviceArray<uint16_t> means_;  // f16 [layer][kv_head][chunk][head_dim]
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_VIEW_DIGESTS_H_
