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

absl::Status RetrievalKv::Rewind(const std::vector<int32_t>& tokens) {
  const auto same = std::mismatch(tokens_.begin(), tokens_.end(),
                                  tokens.begin(), tokens.end());
  const int64_t shared =
      session_.sequence().first_position() + (same.first - tokens_.begin());
  end_ = std::min(end_, shared);
  session_.draft_view().Truncate(end_);
  tokens_ = tokens;
  return absl::OkStatus();
}

absl::Status RetrievalKv::Keep(size_t length, absl::Span<const int32_t> next) {
  tokens_.resize(length);
  end_ = session_.sequence().first_position() + static_cast<int64_t>(length);
  session_.draft_view().Truncate(end_);
  tokens_.insert(tokens_.end(), next.begin(), next.end());
  return absl::OkStatus();
}

}  // namespace tiercel
