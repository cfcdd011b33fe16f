#include "runtime/drafting/window_drafter.h"

#include "absl/cleanup/cleanup.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

absl::Status WindowTarget::Begin(const std::vector<int32_t>& tokens) {
  session_.Truncate(tokens.size());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Distribution>> WindowTarget::Distributions(
    const std::vector<int32_t>& block) {
  before_ = session_.sequence().tokens().size();
  RETURN_IF_ERROR(session_.Append(block.data(), block.size()));
  const int64_t rows = session_.sequence().pending();
  const auto wanted = static_cast<int64_t>(block.size() + 1);
  RETURN_IF_ERROR(session_.Forward(rows, Phase::kDraft, kNoProgress, view_));
  ASSIGN_OR_RETURN(const float* logits,
                   session_.runner().RowLogits(rows - wanted, wanted));
  return MakeDistributions(
      session_.runner().stream(),
      {.logits = logits,
       .rows = wanted,
       .vocab = session_.model().config.vocab,
       .tokens = session_.sequence().tokens().data(),
       .before = static_cast<int64_t>(before_),
       .distribution = distribution_,
       .answer_begin = session_.sequence().answer_begin()});
}

absl::Status WindowTarget::Keep(size_t count, int32_t next) {
  session_.Truncate(before_ + count);
  return session_.Append(&next, 1);
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
