#ifndef TIERCEL_OFFLOAD_RETRIEVAL_DIGESTS_H_
#define TIERCEL_OFFLOAD_RETRIEVAL_DIGESTS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/device/device_memory.h"
#include "kernels/device/stream.h"
#include "offload/kv/kv_store.h"

namespace tiercel {

// The means of every complete chunk's keys, per layer and KV head, in f16. They
// stay on the device wherever the keys themselves are, so that a retrieval view
// can be chosen by them (TriForce, arXiv 2404.11912, section 4.1). Chunk i
// begins at position i * chunk; the first of a sequence may lack its beginning.
// With Shape::norms their norms are kept too.
class Digests {
 public:
  struct Shape {
    KvLayout layout = {};
    int layers = 0;
    int heads = 0;        // query heads
    int chunk = 32;       // positions; divides kPageTokens
    int64_t begin = 0;    // the sequence's first position
    int64_t context = 0;  // positions
    bool norms = false;

    int64_t FirstChunk() const { return begin / chunk; }
    int64_t Chunks() const {  // at most
      return (begin + context) / chunk - FirstChunk();
    }
    int64_t Bytes() const {
      constexpr int64_t kHalf = sizeof(uint16_t);
      return AlignedBytes(Means() * layout.head_dim * kHalf) +
             AlignedBytes(norms ? Means() * kHalf : 0);
    }
    int64_t Means() const { return layers * layout.kv_heads * Chunks(); }
  };

  // Errors: out_of_memory.
  static absl::StatusOr<Digests> Create(DeviceMemory& memory,
                                        const Shape& shape);
  // Returns an independent copy. Errors: out_of_memory.
  absl::StatusOr<Digests> Copy(DeviceMemory& memory) const;

  // Digests the chunks of `layer` that are complete once the positions up to
  // kv.end + rows have been written. It catches up on earlier steps for which
  // it was not called.
  absl::Status Update(Stream& stream, int layer, const KvPages& kv,
                      int64_t rows);

  // Update reads no K and V before this position.
  int64_t UpdatesFrom() const;

  // Forgets the positions from `end` on: they are digested anew.
  void Truncate(int64_t end);

  // The means of `layer` from the sequence's chunk 0 on: [kv_heads,
  // HeadElements()].
  DevicePtr<const uint16_t> MeansOf(int layer) const {
    return means_.data() + layer * shape_.layout.kv_heads * HeadElements();
  }
  // [kv_heads, Chunks()]
  DevicePtr<const uint16_t> NormsOf(int layer) const {
    return norms_.data() + layer * shape_.layout.kv_heads * shape_.Chunks();
  }
  int64_t HeadElements() const {
    return shape_.Chunks() * shape_.layout.head_dim;
  }
  const Shape& shape() const { return shape_; }

 private:
  Digests(const Shape& shape, DeviceArray<uint16_t> means,
          DeviceArray<uint16_t> norms)
      : shape_(shape),
        means_(std::move(means)),
        norms_(std::move(norms)),
        known_(static_cast<size_t>(shape.layers), shape.begin) {}

  Shape shape_;
  DeviceArray<uint16_t> means_;  // f16 [layer][kv_head][chunk][head_dim]
  DeviceArray<uint16_t> norms_;  // f16 [layer][kv_head][chunk]
  std::vector<int64_t> known_;   // [layer]: digested up to this position
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_RETRIEVAL_DIGESTS_H_
