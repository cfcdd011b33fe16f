#ifndef TIERCEL_RUNTIME_DRAFTING_ROUNDS_H_
#define TIERCEL_RUNTIME_DRAFTING_ROUNDS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "drafts/draft_length.h"
#include "drafts/drafter.h"
#include "drafts/verify.h"
#include "runtime/drafting/draft_ahead.h"
#include "runtime/drafting/schedule_report.h"
#include "runtime/session/session.h"

namespace tiercel {

// The work of one generation's rounds, and the time that it took.
struct RoundsReport {
  std::vector<DraftLevel> levels;  // the innermost first
  TimeSpent verify;                // sweeps, and steps that read everything
  TimeSpent fast;                  // steps that read a view and are kept
  TimeSpent draft;
  TimeSpent refresh;
  std::optional<ScheduleReport> schedule = {};  // absent: the policy has none

  // Adds other rounds of the same generation.
  RoundsReport& operator+=(const RoundsReport& other);
};

// The rounds of one generation of a session: in each a drafter proposes and the
// target decides. Without a drafter a round is a decode step.
class Rounds {
 public:
  struct Options {
    uint64_t seed = 0;
    VerifyMode verify = VerifyMode::kResidual;
    Drafter* drafter = nullptr;  // null: no proposals; outlives this
    DraftLength length = DraftLength::Fixed(1);  // most tokens that it drafts
    bool over_view = false;  // it drafts over the session's retrieval view
    bool ahead = false;      // it drafts during sweeps, too (DraftAhead)
  };
  // `target` is the session's, and outlives this.
  Rounds(Session& session, Target& target, const Options& options);

  // Call it before the first round: it readies the view that is drafted over.
  // Errors: those of Session::CatchUpForDrafts.
  absl::Status Begin();

  // Runs one round: returns the drafted tokens that the target accepts, and one
  // of the target's own. The session then holds them. Errors: those of the
  // drafter and of the session; nothing_allowed, if no token may follow.
  absl::StatusOr<VerifiedBlock> Next();
  // Like Next, and notes the block in `schedule`; `at` is the number of output
  // tokens before it.
  absl::StatusOr<VerifiedBlock> Next(int64_t at, ScheduleReport* schedule);

  RoundsReport report() const;
  // Frees the workspaces that drafting ahead has taken.
  void Rest() {
    if (ahead_ != nullptr) ahead_->Rest();
  }

 private:
  // A target that measures its time.
  class TimedTarget final : public Target {
   public:
    TimedTarget(Session& session, Target& target)
        : session_(session), target_(target) {}
    // `ahead` drafts during its sweeps, and outlives it.
    void DraftsAhead(DraftAhead* ahead) { ahead_ = ahead; }

    absl::StatusOr<std::vector<Distribution>> Distributions(
        const std::vector<int32_t>& block) override;
    absl::StatusOr<TreeDistributions> OfTree(const DraftBlock& block) override;
    absl::Status Keep(size_t count, absl::Span<const int32_t> next) override;
    TimeSpent spent() const { return spent_; }

   private:
    Session& session_;
    Target& target_;
    DraftAhead* ahead_ = nullptr;  // null: nothing does
    TimeSpent spent_;
  };

  bool CanDraftAhead() const;
  int64_t MostToDraft() const;

  Session& session_;
  const Options options_;
  TimedTarget target_;
  std::unique_ptr<DraftAhead> ahead_;  // null: drafts and sweeps take turns
  DraftLength length_;
  DraftLevel level_;  // the drafter's own
  TimeSpent verify_;
  TimeSpent draft_;
  TimeSpent refresh_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_DRAFTING_ROUNDS_H_
