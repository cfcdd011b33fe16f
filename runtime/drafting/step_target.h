#ifndef TIERCEL_RUNTIME_DRAFTING_STEP_TARGET_H_
#define TIERCEL_RUNTIME_DRAFTING_STEP_TARGET_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "drafts/verify.h"
#include "kernels/token/law.h"
#include "runtime/drafting/rounds.h"
#include "runtime/drafting/schedule_report.h"
#include "runtime/sequence/session.h"
#include "runtime/sequence/time_spent.h"

namespace tiercel {

// The target of a policy's plain form: the session's model, a row at a time,
// over what the policy has that row read. What it writes is kept; once the
// generation is over it is provisional (Session::DropProvisional).
class StepTarget : public Target {
 public:
  // Laws are made with `law`. The session outlives it.
  StepTarget(Session& session, const LawParams& law)
      : session_(session), law_(law) {}

  // The session's tokens are computed as a prompt. Errors: those of CatchUp.
  absl::Status Begin();
  // [vocab] of the token after the last, in device memory until the next call.
  // Errors: those of Step.
  absl::StatusOr<const float*> NextLogits();
  // `id` follows. Errors: those of Session::Append.
  absl::Status Append(int32_t id);

  // The block must be empty: nobody drafts for it.
  absl::StatusOr<std::vector<Law>> Laws(
      const std::vector<int32_t>& block) override;
  absl::Status Keep(size_t count, int32_t next) override;

  // Adds what was computed since Begin, to its schedule too if it has one.
  void AddTo(RoundsReport* report) const;

 protected:
  enum class Speed { kFast, kSlow };  // over a view, over everything

  Session& session() { return session_; }

 private:
  // Computes the row of the last token, so that the session knows what follows.
  virtual absl::StatusOr<Speed> Step() = 0;
  // `id` has been appended.
  virtual void Advance(int32_t id) = 0;

  Session& session_;
  const LawParams law_;
  int64_t appended_ = 0;  // tokens
  std::vector<ScheduleReport::Taken> taken_;
  TimeSpent fast_spent_;
  TimeSpent slow_spent_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_DRAFTING_STEP_TARGET_H_
