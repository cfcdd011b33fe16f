#ifndef TIERCEL_OFFLOAD_RETRIEVAL_MEAN_SCORER_H_
#define TIERCEL_OFFLOAD_RETRIEVAL_MEAN_SCORER_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "offload/retrieval/digests.h"
#include "offload/retrieval/scorer.h"

namespace tiercel {

// Scores chunks by the means of their keys. It does not need the keys.
class MeanScorer final : public Scorer {
 public:
  // `shape.norms` must be true. Errors: out_of_memory.
  static absl::StatusOr<std::unique_ptr<Scorer>> Create(
      DeviceMemory& memory, const Digests::Shape& shape);

  absl::Status Update(Stream& stream, int layer, const KvPages& kv,
                      int64_t rows) override {
    return digests_.Update(stream, layer, kv, rows);
  }
  void Truncate(int64_t end) override { digests_.Truncate(end); }
  absl::StatusOr<std::unique_ptr<Scorer>> Copy(
      DeviceMemory& memory) const override;
  absl::Status Score(Stream& stream, int layer, const Question& asked,
                     DevicePtr<float> scores, int64_t stride) override;
  bool OfPositions() const override { return false; }
  Norms NormsOf(int layer) const override {
    return {digests_.NormsOf(layer), digests_.shape().Chunks()};
  }

 private:
  explicit MeanScorer(Digests digests) : digests_(std::move(digests)) {}

  Digests digests_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_RETRIEVAL_MEAN_SCORER_H_
