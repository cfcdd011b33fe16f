#include "runtime/drafting/sweep_target.h"

#include <utility>

#include "kernels/token/distribution.h"
#include "lib/status/status_macros.h"

namespace tiercel {

absl::StatusOr<std::vector<Distribution>> SweepTarget::Distributions(
    const std::vector<int32_t>& block) {
  // After a prompt the first row's logits are known; otherwise the last token's
  // row is the first of the sweep.
  if (session_.sequence().pending() != 1) {
    RETURN_IF_ERROR(session_.CatchUp(Phase::kVerify));
  }
  before_ = session_.sequence().tokens().size();
  swept_ = false;
  const float* logits = session_.NextLogits().data();
  const bool next_known = session_.sequence().pending() == 0;
  RETURN_IF_ERROR(session_.Append(block.data(), block.size()));
  const auto rows = static_cast<size_t>(session_.sequence().pending());
  const int64_t vocab = session_.model().config.vocab;
  if (rows > 0) {
    RETURN_IF_ERROR(session_.Sweep(Phase::kVerify));
    swept_ = true;
    ASSIGN_OR_RETURN(const float* swept, session_.runner().RowLogits(
                                             0, static_cast<int64_t>(rows)));
    // If the first row was known, the sweep's rows lie behind it.
    if (!next_known) logits = swept;
  }
  return MakeDistributions(
      session_.runner().stream(),
      {.logits = logits,
       .rows = static_cast<int64_t>(block.size() + 1),
       .vocab = vocab,
       .tokens = session_.sequence().tokens().data(),
       .before = static_cast<int64_t>(before_),
       .distribution = distribution_,
       .answer_begin = session_.sequence().answer_begin()});
}

absl::Status SweepTarget::Keep(size_t count, int32_t next) {
  if (swept_) {
    RETURN_IF_ERROR(session_.Keep(before_ + count));
  }
  return session_.Append(&next, 1);
}

}  // namespace tiercel
