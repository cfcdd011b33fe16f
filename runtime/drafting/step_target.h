#ifndef TIERCEL_RUNTIME_DRAFTING_STEP_TARGET_H_
#define TIERCEL_RUNTIME_DRAFTING_STEP_TARGET_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "drafts/verify.h"
#include "kernels/token/distribution.h"
#include "runtime/drafting/rounds.h"
#include "runtime/drafting/schedule_report.h"
#include "runtime/session/session.h"
#include "runtime/session/time_spent.h"

namespace tiercel {

// The target of a policy's plain form: the session's model, one row at a time,
// over the positions that the policy lets that row read. Its rows are kept;
// once the generation is over they are provisional (Session::DropProvisional).
class StepTarget : public Target {
 public:
  // Distributions are made with `distribution`. The session outlives it.
  StepTarget(Session& session, const DistributionParams& distribution)
      : session_(session), distribution_(distribution) {}

  // Computes the session's tokens as a prompt. Errors: those of CatchUp.
  absl::Status Begin();
  // The logits [vocab] of the token after the last, valid until the next call.
  // Errors: those of Step.
  absl::StatusOr<const float*> NextLogits();
  // Appends `id` and tells the policy. Errors: those of Session::Append.
  absl::Status Append(int32_t id);

  // The block must be empty: a plain form checks no drafts.
  absl::StatusOr<std::vector<Distribution>> Distributions(
      const std::vector<int32_t>& block) override;
  absl::Status Keep(size_t count, absl::Span<const int32_t> next) override;

  // Adds the time spent since Begin, and the steps taken if the report has a
  // schedule.
  void AddTo(RoundsReport* report) const;

 protected:
  enum class Speed { kFast, kSlow };  // over a view, over everything

  Session& session() { return session_; }
  // Computes the row of the last token over `view`. Errors: those of
  // Session::Forward.
  absl::Status ReadOver(Phase phase, const View& view);

 private:
  // Computes the row of the last token, so that the session knows the logits of
  // the next.
  virtual absl::StatusOr<Speed> Step() = 0;
  // Tells the policy that `id` has been appended.
  virtual void Advance(int32_t id) = 0;

  Session& session_;
  const DistributionParams distribution_;
  int64_t appended_ = 0;  // tokens
  std::vector<ScheduleReport::Taken> taken_;
  TimeSpent fast_spent_;
  TimeSpent slow_spent_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_DRAFTING_STEP_TARGET_H_
