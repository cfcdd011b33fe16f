#include "offload/retrieval/importance_selector.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "kernels/select/coverage.h"
#include "kernels/select/importance.h"
#include "kernels/select/selector.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

// After one row of one head the prior may have more weight, by this factor.
constexpr float kOfOneRow = 0.35f / 0.25f;

}  // namespace

int64_t ImportanceSelector::Shape::Bytes() const {
  constexpr int64_t kFloat = sizeof(float);
  const int64_t gathered =
      Gathers() ? AlignedBytes(Rivals() * chunks * kFloat) +
                      AlignedBytes(Rivals() * chunks *
                                   static_cast<int64_t>(sizeof(uint16_t)))
                : 0;
  return gathered + AlignedBytes(heads * Stride() * kFloat) +
         AlignedBytes(Importance() * kFloat) +
         AlignedBytes(Picked() * static_cast<int64_t>(sizeof(int32_t))) +
         AlignedBytes(heads * kFloat);
}

absl::StatusOr<std::unique_ptr<Selector>> ImportanceSelector::Create(
    DeviceMemory& memory, const Shape& shape, std::unique_ptr<Scorer> scorer) {
  ASSIGN_OR_RETURN(DeviceArray<float> scores,
                   DeviceArray<float>::Create(
                       memory, shape.heads * shape.Stride(), "scores"));
  ASSIGN_OR_RETURN(
      DeviceArray<float> importance,
      DeviceArray<float>::Create(memory, shape.Importance(), "importance"));
  ASSIGN_OR_RETURN(
      DeviceArray<int32_t> picked,
      DeviceArray<int32_t>::Create(memory, shape.Picked(), "chosen chunks"));
  ASSIGN_OR_RETURN(DeviceArray<float> shares,
                   DeviceArray<float>::Create(memory, shape.heads, "coverage"));
  const int64_t gathered = shape.Gathers() ? shape.Rivals() * shape.chunks : 0;
  ASSIGN_OR_RETURN(
      DeviceArray<float> all_importance,
      DeviceArray<float>::Create(memory, gathered, "importance of all ranks"));
  ASSIGN_OR_RETURN(
      DeviceArray<uint16_t> all_norms,
      DeviceArray<uint16_t>::Create(memory, gathered, "lengths of all ranks"));
  return std::unique_ptr<Selector>(new ImportanceSelector(
      shape, std::move(scorer),
      {std::move(scores), std::move(importance), std::move(picked),
       std::move(shares), std::move(all_importance), std::move(all_norms)}));
}

absl::StatusOr<std::unique_ptr<Selector>> ImportanceSelector::Copy(
    DeviceMemory& memory) const {
  ASSIGN_OR_RETURN(std::unique_ptr<Scorer> scorer, scorer_->Copy(memory));
  return Create(memory, shape_, std::move(scorer));
}

absl::StatusOr<DevicePtr<const float>> ImportanceSelector::UpdateImportance(
    Stream& stream, int layer, const QueryRows& by, const KvPages* kv,
    int64_t chunks, float decay) {
  DevicePtr<float> importance = ImportanceOf(layer);
  const size_t bytes =
      static_cast<size_t>(shape_.kv_heads * shape_.chunks) * sizeof(float);
  if (decay == 0.0f) {
    RETURN_IF_ERROR(stream.Zero(importance, bytes));
  }
  // Adds the importance of the candidates before `last`, by a row's scores, to
  // `much` times `before`. With null scores it copies `before`.
  const auto add = [&](DevicePtr<const float> scores, int64_t last,
                       DevicePtr<const float> before, float much) {
    return AddImportance(
        stream, {.scores = scores,
                 .scores_stride = shape_.Stride(),
                 .rows = scores != nullptr ? 1 : 0,
                 .heads = shape_.heads,
                 .kv_heads = shape_.kv_heads,
                 .candidates = std::max<int64_t>(0, last - shape_.sinks),
                 .decay = much,
                 .before = before,
                 .importance = importance,
                 .importance_stride = shape_.chunks});
  };
  for (int64_t row = 0; row < by.rows; ++row) {
    if (row == by.Certain() && Decays()) {  // later rows are not remembered
      const DevicePtr<const float> remembered = importance;
      importance = ImportanceWithDrafted();
      RETURN_IF_ERROR(add(nullptr, shape_.chunks, remembered, 1.0f));
    }
    const int64_t position = by.position + row;
    const int64_t seen = (position + 1) / shape_.chunk - FirstChunk();
    // Importance that is kept covers all chunks that a row sees: the newest are
    // candidates in later steps.
    const int64_t weighed = Decays() ? seen : chunks;
    // Coverage is a share of all positions that the row sees.
    const bool measured = Measures(by) && row == by.Certain() - 1;
    const int64_t first = measured ? 0 : std::min(shape_.sinks, weighed);
    const int64_t last = measured ? seen : weighed;
    RETURN_IF_ERROR(scorer_->Score(stream, layer,
                                   {.q = by.q + row * by.row_floats,
                                    .position = position,
                                    .kv = kv,
                                    .first = first,
                                    .last = last},
                                   work_.scores.data(), shape_.Stride()));
    RETURN_IF_ERROR(add(work_.scores.data() + (shape_.sinks - first), weighed,
                        importance, row == 0 && decay > 0.0f ? decay : 1.0f));
    if (!measured) continue;
    RETURN_IF_ERROR(Measure(stream, *by.seen, position + 1 - shape_.begin));
  }
  return importance;
}

absl::Status ImportanceSelector::Measure(Stream& stream, const Seen& seen,
                                         int64_t positions) {
  RETURN_IF_ERROR(Coverage(stream, {.scores = work_.scores.data(),
                                    .scores_stride = shape_.Stride(),
                                    .heads = shape_.heads,
                                    .kv_heads = shape_.kv_heads,
                                    .positions = positions,
                                    .kept = seen.kept,
                                    .num_kept = seen.num_kept,
                                    .newest = seen.newest,
                                    .out = work_.shares.data()}));
  std::vector<float> shares;
  RETURN_IF_ERROR(ReadBack(stream, work_.shares, &shares));
  coverage_ = std::accumulate(shares.begin(), shares.end(), 0.0) / shape_.heads;
  return absl::OkStatus();
}

absl::StatusOr<ImportanceSelector::Told> ImportanceSelector::Tell(
    Stream& stream, int layer, DevicePtr<const float> own_importance) {
  const Scorer::Norms own = scorer_->NormsOf(layer);
  if (!shape_.Gathers()) return Told{own_importance, own, 0};
  const HeadsOfRanks& ranks = shape_.of_ranks;
  const auto columns = [&](int64_t of_head) {
    std::vector<Columns> all;
    for (const Columns& heads : ranks.kv_heads) {
      all.push_back({heads.begin * of_head, heads.end * of_head});
    }
    return all;
  };
  const std::vector<Columns> importance = columns(shape_.chunks);
  RETURN_IF_ERROR(
      ranks.gather->All(stream, ranks.rank,
                        {.columns = importance,
                         .rows = 1,
                         .own = own_importance,
                         .own_stride = shape_.kv_heads * shape_.chunks,
                         .all = work_.all_importance.data(),
                         .all_stride = importance.back().end}));
  const std::vector<Columns> norms = columns(own.stride);
  RETURN_IF_ERROR(ranks.gather->All(stream, ranks.rank,
                                    {.columns = norms,
                                     .rows = 1,
                                     .own = own.of_first,
                                     .own_stride = shape_.kv_heads * own.stride,
                                     .all = work_.all_norms.data(),
                                     .all_stride = norms.back().end,
                                     .element_bytes = sizeof(uint16_t)}));
  return Told{
      work_.all_importance.data(),
      {work_.all_norms.data(), own.stride},
      static_cast<int>(ranks.kv_heads[static_cast<size_t>(ranks.rank)].begin)};
}

absl::Status ImportanceSelector::Choose(
    Stream& stream, int layer, const QueryRows& by, const KvPages* kv,
    int64_t chunks, std::vector<std::vector<int32_t>>* chosen) {
  coverage_.reset();
  std::vector<int32_t> first(
      static_cast<size_t>(chunks <= shape_.budget ? chunks : shape_.sinks));
  std::iota(first.begin(), first.end(), 0);
  chosen->assign(static_cast<size_t>(shape_.kv_heads), first);
  const bool chooses = chunks > shape_.budget && shape_.budget > shape_.sinks;
  const auto at = static_cast<size_t>(layer);
  const int64_t before = std::exchange(said_by_[at], 0);
  if (!chooses && !Measures(by)) return absl::OkStatus();
  QueryRows rows = by;
  if (!chooses) {  // only the coverage of one row is wanted
    rows.q += (by.Certain() - 1) * by.row_floats;
    rows.position += by.Certain() - 1;
    rows.rows = 1;
    rows.drafted = 0;
  }
  // Each step has the same weight, however many rows it has.
  const float decay = by.goes_on && before > 0
                          ? shape_.choice.decay *
                                static_cast<float>(by.Certain()) /
                                static_cast<float>(before)
                          : 0.0f;
  const absl::StatusOr<DevicePtr<const float>> said =
      UpdateImportance(stream, layer, rows, kv, chunks, decay);
  if (!said.ok() || !chooses) return said.status();
  said_by_[at] = Decays() ? by.Certain() : 0;

  const bool one =
      decay == 0.0f && by.rows * (shape_.heads / shape_.kv_heads) == 1;
  const float prior = shape_.choice.most_prior * (one ? kOfOneRow : 1.0f);
  const int64_t budget = shape_.budget - shape_.sinks;
  ASSIGN_OR_RETURN(const Told told, Tell(stream, layer, *said));
  const Scorer::Norms& norms = told.norms;
  RETURN_IF_ERROR(Select(stream, {.importance = told.importance,
                                  .importance_stride = shape_.chunks,
                                  .norms = norms.of_first + shape_.sinks,
                                  .norms_stride = norms.stride,
                                  .kv_heads = shape_.Rivals(),
                                  .candidates = chunks - shape_.sinks,
                                  .budget = budget,
                                  .most_prior = std::min(prior, 1.0f),
                                  .reach = shape_.Reach(),
                                  .suppression = shape_.Suppression(),
                                  .exclusivity = shape_.choice.exclusivity,
                                  .out = work_.picked.data()}));
  RETURN_IF_ERROR(ReadBack(stream, work_.picked, &picked_));
  for (size_t head = 0; head < chosen->size(); ++head) {
    const int32_t* const picked =
        picked_.data() +
        (told.first_head + static_cast<int64_t>(head)) * budget;
    for (int64_t i = 0; i < budget; ++i) {
      (*chosen)[head].push_back(static_cast<int32_t>(shape_.sinks) + picked[i]);
    }
  }
  return absl::OkStatus();
}

}  // namespace tiercel
