#include "offload/retrieval/key_scorer.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/kv/key_norms.h"
#include "kernels/select/key_scores.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

absl::StatusOr<std::unique_ptr<Scorer>> KeyScorer::Create(DeviceMemory& memory,
                                                          const Shape& shape) {
  ASSIGN_OR_RETURN(
      DeviceArray<uint16_t> norms,
      DeviceArray<uint16_t>::Create(memory, shape.Norms(), "norms of keys"));
  return std::unique_ptr<Scorer>(new KeyScorer(shape, std::move(norms)));
}

absl::StatusOr<std::unique_ptr<Scorer>> KeyScorer::Copy(
    DeviceMemory& memory) const {
  ASSIGN_OR_RETURN(DeviceArray<uint16_t> norms,
                   norms_.Copy(memory, "norms of keys"));
  std::unique_ptr<KeyScorer> copy(new KeyScorer(shape_, std::move(norms)));
  copy->known_ = known_;
  return copy;
}

absl::Status KeyScorer::Update(Stream& stream, int layer, const KvPages& kv,
                               int64_t rows) {
  int64_t& known = known_[static_cast<size_t>(layer)];
  const int64_t first = std::min(known, kv.end);
  const absl::Status status =
      KeyNorms(stream, {.layout = kv.layout,
                        .pages = kv.pages,
                        .first_page = kv.first_page,
                        .num_pages = kv.num_pages,
                        .first = first,
                        .last = kv.end + rows,
                        .out = norms_.data() +
                               layer * shape_.layout.kv_heads * shape_.context +
                               first - shape_.begin,
                        .out_stride = shape_.context});
  if (status.ok()) known = kv.end + rows;
  return status;
}

void KeyScorer::Truncate(int64_t end) {
  for (int64_t& known : known_) known = std::min(known, end);
}

absl::Status KeyScorer::Score(Stream& stream, int /*layer*/,
                              const Question& asked, DevicePtr<float> scores,
                              int64_t stride) {
  if (asked.kv == nullptr) {
    return InternalError("internal", "keys are scored where they are at hand");
  }
  const KvPages& kv = *asked.kv;
  const int head_dim = kv.layout.head_dim;
  return KeyScores(stream, {.q = asked.q,
                            .q_stride = int64_t{shape_.heads} * head_dim,
                            .rows = 1,
                            .heads = shape_.heads,
                            .scale = kv.layout.AttentionScale(),
                            .layout = kv.layout,
                            .pages = kv.pages,
                            .first_page = kv.first_page,
                            .num_pages = kv.num_pages,
                            .position = asked.position,
                            .first = shape_.begin + asked.first,
                            .last = shape_.begin + asked.last,
                            .out = scores,
                            .out_stride = stride});
}

}  // namespace tiercel
