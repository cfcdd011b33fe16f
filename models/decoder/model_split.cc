#include "models/decoder/model_split.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/layer/packed_matrix.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

constexpr int64_t kPanel = PackedMatrix::kPanelRows;

// Divides [0, size) into `ranks` parts of whole panels; the last panel may be
// incomplete.
std::vector<Columns> DividePanels(int64_t size, int ranks,
                                  int64_t panel = kPanel) {
  const int64_t panels = (size + panel - 1) / panel;
  std::vector<Columns> parts;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    parts.push_back({rank * panels / ranks * panel,
                     std::min(size, (rank + 1) * panels / ranks * panel)});
  }
  return parts;
}

// Parts are whole panels, or single outputs if there are fewer panels than
// ranks.
std::vector<Columns> Divide(int64_t size, int ranks) {
  return DividePanels(size, ranks, size > kPanel * (ranks - 1) ? kPanel : 1);
}

absl::Status CannotSplit(int ranks, const std::string& why) {
  return UsageError(
      "cannot_split",
      absl::StrCat("the model cannot be split over ", ranks, " ranks: ", why));
}

int64_t Others(const std::vector<Columns>& columns, int rank) {
  if (columns.empty()) return 0;
  return columns.back().end - columns[static_cast<size_t>(rank)].size();
}

}  // namespace

ModelSplit ModelSplit::Whole(const ModelConfig& config) {
  return *Create(config, 1);
}

absl::StatusOr<ModelSplit> ModelSplit::Create(const ModelConfig& config,
                                              int ranks) {
  if (ranks < 1 || ranks > kMostRanks) {
    return UsageError(
        "invalid_argument",
        absl::StrCat("ranks: got ", ranks, ", need 1 to ", kMostRanks));
  }
  const ExpertsConfig& experts = config.experts;
  const int ffn =
      experts.count > 0 ? std::min(config.ffn, experts.ffn) : config.ffn;
  if (std::min(config.hidden, ffn) < ranks) {
    return CannotSplit(
        ranks, absl::StrCat("it has ", config.hidden, " hidden and ", ffn,
                            " ffn columns"));
  }
  // With tied embeddings a rank uses its output rows in place in the embedding,
  // so they must be whole panels.
  if (ranks > 1 && config.vocab <= kPanel * (ranks - 1)) {
    return CannotSplit(ranks, absl::StrCat("it has ", config.vocab,
                                           " tokens, and each "
                                           "rank needs a panel of ",
                                           kPanel));
  }
  ModelSplit split;
  const int64_t kv_heads = config.kv_heads;
  split.group_ = config.heads / config.kv_heads;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    if (kv_heads >= ranks) {
      const Columns kv = {rank * kv_heads / ranks,
                          (rank + 1) * kv_heads / ranks};
      split.kv_heads_.push_back(kv);
      split.heads_.push_back({kv.begin * split.group_, kv.end * split.group_});
      continue;
    }
    // The ranks of one KV head divide its query heads.
    const int64_t head = rank * kv_heads / ranks;
    const int64_t first = (head * ranks + kv_heads - 1) / kv_heads;
    const int64_t last = ((head + 1) * ranks + kv_heads - 1) / kv_heads;
    const int64_t sharing = last - first;
    if (sharing > split.group_) {
      return CannotSplit(
          ranks, absl::StrCat("it has ", config.heads, " query heads for ",
                              config.kv_heads,
                              " KV heads, and each rank "
                              "needs a query head"));
    }
    const int64_t begin = head * split.group_;
    split.kv_heads_.push_back({head, head + 1});
    split.heads_.push_back(
        {begin + (rank - first) * split.group_ / sharing,
         begin + (rank - first + 1) * split.group_ / sharing});
  }
  for (const Columns& heads : split.heads_) {
    split.attention_.push_back(
        {heads.begin * config.head_dim, heads.end * config.head_dim});
  }
  split.hidden_ = Divide(config.hidden, ranks);
  split.ffn_ = Divide(config.ffn, ranks);
  if (experts.count > 0) split.expert_ffn_ = Divide(experts.ffn, ranks);
  split.used_ = experts.used;
  split.vocab_ = DividePanels(config.vocab, ranks);
  return split;
}

int64_t ModelSplit::GatheredPerLayer(int rank, bool experts) const {
  const int64_t ffn =
      experts ? used_ * Others(expert_ffn_, rank) : Others(ffn_, rank);
  const int64_t floats =
      Others(attention_, rank) + 2 * Others(hidden_, rank) + ffn;
  return floats * static_cast<int64_t>(sizeof(float));
}

int64_t ModelSplit::GatheredLogits(int rank) const {
  return Others(vocab_, rank) * static_cast<int64_t>(sizeof(float));
}

}  // namespace tiercel
