#include "runtime/drafting/retrieval_kv.h"

#include <algorithm>

#include "lib/status/status_macros.h"

namespace tiercel {

absl::Status RetrievalKv::Begin(const std::vector<int32_t>& tokens) {
  tokens_ = tokens;
  end_ = session_.draft_view().end();
  return absl::OkStatus();
}

absl::StatusOr<const float*> RetrievalKv::Pass(
    const std::vector<int32_t>& block,
    absl::Span<const DraftBranch> /*branches*/) {
  DraftView& view = session_.draft_view();
  view.Truncate(end_);
  tokens_.insert(tokens_.end(), block.begin(), block.end());
  const int64_t known = end_ - session_.sequence().first_position();
  const int64_t rows = std::ssize(tokens_) - known;
  view.SetWindow(options_.window);
  const absl::Status status = view.Forward(
      tokens_.data() + known, rows,
      options_.layers > 0 ? options_.layers : session_.model().config.layers);
  view.SetWindow(0);
  if (!status.ok()) return status;
  const int64_t wanted = std::ssize(block) + 1;
  return session_.runner().RowLogits(rows - wanted, wanted);
}

// The view has rows of the block up to its last token, which has none: branches
// begin in its cell.
absl::StatusOr<const float*> RetrievalKv::PassBranches(
    const DraftBlock& block, absl::Span<const size_t> growing) {
  DraftView& view = session_.draft_view();
  view.Truncate(end_);
  const int64_t begin = session_.sequence().first_position() +
                        std::ssize(tokens_) - std::ssize(block.tokens);
  std::vector<DraftView::BranchRow> rows;
  for (const size_t i : growing) {
    const DraftBranch& branch = block.branches[i];
    const auto index = static_cast<int64_t>(i);
    rows.push_back(
        {.id = branch.tokens.back(),
         .place = {.index = i,
                   .at = begin + static_cast<int64_t>(branch.at),
                   .cells = end_ + index * VerifyingDrafter::kBranchTokens,
                   .rows = std::ssize(branch.tokens) - 1}});
  }
  RETURN_IF_ERROR(view.ForwardBranches(rows));
  return session_.runner().RowLogits(0, std::ssize(rows));
}

absl::Status RetrievalKv::Keep(size_t length, absl::Span<const int32_t> next) {
  tokens_.resize(length);
  end_ = session_.sequence().first_position() + static_cast<int64_t>(length);
  session_.draft_view().Truncate(end_);
  tokens_.insert(tokens_.end(), next.begin(), next.end());
  return absl::OkStatus();
}

}  // namespace tiercel
