#include "runtime/drafting/step_target.h"

#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "runtime/drafting/model_target.h"

namespace tiercel {

absl::Status StepTarget::Begin() {
  session_.DropProvisional();
  return session_.sequence().tokens().empty()
             ? absl::OkStatus()
             : session_.CatchUp(Phase::kVerify);
}

absl::StatusOr<const float*> StepTarget::NextLogits() {
  if (session_.sequence().pending() > 0) {
    const TimeSpent start = session_.Elapsed();
    ASSIGN_OR_RETURN(const Speed speed, Step());
    const bool slow = speed == Speed::kSlow;
    const TimeSpent spent = session_.Elapsed() - start;
    taken_.push_back({appended_, slow, {1, spent.seconds}});
    (slow ? slow_spent_ : fast_spent_) += spent;
  }
  return session_.NextLogits().data();
}

absl::Status StepTarget::ReadOver(Phase phase, const View& view) {
  RETURN_IF_ERROR(session_.Forward(/*rows=*/1, phase, kNoProgress, view));
  return session_.runner().KeepRow(0);
}

absl::Status StepTarget::Append(int32_t id) {
  RETURN_IF_ERROR(session_.Append(&id, 1));
  ++appended_;
  Advance(id);
  return absl::OkStatus();
}

void StepTarget::AddTo(RoundsReport* report) const {
  report->fast = fast_spent_;
  report->verify = slow_spent_;
  if (!report->schedule.has_value()) return;
  report->schedule->plain = true;
  report->schedule->taken = taken_;
}

absl::StatusOr<std::vector<Distribution>> StepTarget::Distributions(
    const std::vector<int32_t>& block) {
  if (!block.empty()) {
    return InternalError("internal", "a plain form checks no drafts");
  }
  ASSIGN_OR_RETURN(const float* logits, NextLogits());
  const std::vector<int32_t>& tokens = session_.sequence().tokens();
  return DistributionsOf(session_, logits, tokens, tokens.size(), distribution_,
                         tokens);
}

absl::Status StepTarget::Keep(size_t /*count*/,
                              absl::Span<const int32_t> next) {
  return Append(next.front());
}

}  // namespace tiercel
