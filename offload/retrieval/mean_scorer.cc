#include "offload/retrieval/mean_scorer.h"

#include <cmath>

#include "kernels/select/mean_scores.h"
#include "lib/status/status_macros.h"

namespace tiercel {

absl::StatusOr<std::unique_ptr<Scorer>> MeanScorer::Create(
    DeviceMemory& memory, const Digests::Shape& shape) {
  ASSIGN_OR_RETURN(Digests digests, Digests::Create(memory, shape));
  return std::unique_ptr<Scorer>(new MeanScorer(std::move(digests)));
}

absl::StatusOr<std::unique_ptr<Scorer>> MeanScorer::Copy(
    DeviceMemory& memory) const {
  ASSIGN_OR_RETURN(Digests digests, digests_.Copy(memory));
  return std::unique_ptr<Scorer>(new MeanScorer(std::move(digests)));
}

absl::Status MeanScorer::Score(Stream& stream, int layer, const Question& asked,
                               DevicePtr<float> scores, int64_t stride) {
  const Digests::Shape& shape = digests_.shape();
  const int head_dim = shape.layout.head_dim;
  return MeanScores(stream,
                    {.q = asked.q,
                     .heads = shape.heads,
                     .kv_heads = shape.layout.kv_heads,
                     .head_dim = head_dim,
                     .scale = shape.layout.AttentionScale(),
                     .means = digests_.MeansOf(layer) + asked.first * head_dim,
                     .means_stride = digests_.HeadElements(),
                     .num_chunks = asked.last - asked.first,
                     .out = scores,
                     .out_stride = stride});
}

}  // namespace tiercel
