#ifndef TIERCEL_OFFLOAD_RETRIEVAL_KEY_SCORER_H_
#define TIERCEL_OFFLOAD_RETRIEVAL_KEY_SCORER_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/kv/kv_layout.h"
#include "offload/retrieval/scorer.h"

namespace tiercel {

// Scores chunks of one position by their keys, which works only while a layer's
// pages are on the device.
class KeyScorer final : public Scorer {
 public:
  struct Shape {
    KvLayout layout = {};
    int layers = 0;
    int heads = 0;        // query heads
    int64_t begin = 0;    // the sequence's first position
    int64_t context = 0;  // positions

    int64_t Norms() const { return layers * layout.kv_heads * context; }
    int64_t Bytes() const {
      return AlignedBytes(Norms() * static_cast<int64_t>(sizeof(uint16_t)));
    }
  };
  // Errors: out_of_memory.
  static absl::StatusOr<std::unique_ptr<Scorer>> Create(DeviceMemory& memory,
                                                        const Shape& shape);

  absl::Status Update(Stream& stream, int layer, const KvPages& kv,
                      int64_t rows) override;
  void Truncate(int64_t end) override;
  absl::StatusOr<std::unique_ptr<Scorer>> Copy(
      DeviceMemory& memory) const override;
  // `asked.kv` must not be null.
  absl::Status Score(Stream& stream, int layer, const Question& asked,
                     DevicePtr<float> scores, int64_t stride) override;
  bool OfPositions() const override { return true; }
  Norms NormsOf(int layer) const override {
    return {norms_.data() + layer * shape_.layout.kv_heads * shape_.context,
            shape_.context};
  }

 private:
  KeyScorer(const Shape& shape, DeviceArray<uint16_t> norms)
      : shape_(shape),
        norms_(std::move(norms)),
        known_(static_cast<size_t>(shape.layers), shape.begin) {}

  const Shape shape_;
  DeviceArray<uint16_t> norms_;  // f16 [layer][kv_head][context]
  std::vector<int64_t> known_;   // [layer]: norms are known up to this position
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_RETRIEVAL_KEY_SCORER_H_
