#include "runtime/drafting/window_drafter.h"

#include "absl/cleanup/cleanup.h"
#include "lib/status/status_macros.h"

namespace tiercel {

absl::Status WindowKv::Begin(const std::vector<int32_t>& tokens) {
  session_.Truncate(tokens.size());
  return absl::OkStatus();
}

absl::StatusOr<const float*> WindowKv::Pass(
    const std::vector<int32_t>& block,
    absl::Span<const DraftBranch> /*branches*/) {
  RETURN_IF_ERROR(session_.Append(block.data(), block.size()));
  const int64_t rows = session_.sequence().pending();
  const int64_t wanted = std::ssize(block) + 1;
  RETURN_IF_ERROR(session_.Forward(rows, Phase::kDraft, kNoProgress, view_));
  return session_.runner().RowLogits(rows - wanted, wanted);
}

absl::Status WindowKv::Keep(size_t length, absl::Span<const int32_t> next) {
  session_.Truncate(length);
  return session_.Append(next.data(), next.size());
}

absl::StatusOr<DraftBlock> WindowDrafter::Draft(
    const std::vector<int32_t>& tokens, int64_t most, const DrawKey& key) {
  // `tokens` are the session's own, which grow while it drafts.
  const std::vector<int32_t> before = tokens;
  const absl::Cleanup forget = [&] {
    session_.Truncate(before.size());
    session_.DropProvisional();
  };
  return drafter_.Draft(before, most, key);
}

}  // namespace tiercel
