#ifndef TIERCEL_RUNTIME_DRAFTING_ROUNDS_H_
#define TIERCEL_RUNTIME_DRAFTING_ROUNDS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "drafts/draft_length.h"
#include "drafts/drafter.h"
#include "drafts/verify.h"
#include "kernels/token/law.h"
#include "runtime/drafting/sweep_target.h"
#include "runtime/sequence/session.h"

namespace tiercel {

// What the rounds of one generation did, and where their time went.
struct RoundsReport {
  std::vector<DraftLevel> levels;  // the innermost first
  TimeSpent verify;                // sweeps
  TimeSpent draft;
  TimeSpent refresh;
};

// Round after round of one generation: a drafter proposes, a sweep of the
// session decides. Without a drafter a round is a decode step.
class Rounds {
 public:
  struct Options {
    LawParams law;
    uint64_t seed = 0;
    VerifyMode verify = VerifyMode::kResidual;
    Drafter* drafter = nullptr;                  // null: nobody; outlives this
    DraftLength length = DraftLength::Fixed(1);  // of what it drafts, at most
    bool over_view = false;  // it drafts over the session's retrieval view
  };
  Rounds(Session& session, const Options& options);

  // Before the first round: readies the view that is drafted over.
  // Errors: those of Session::CatchUpForDrafts.
  absl::Status Begin();

  // What the target makes of what the drafter proposes: some tokens that were
  // drafted, and one that was not. The session holds them then. Errors: those
  // of the drafter and of the session.
  absl::StatusOr<VerifiedBlock> Next();

  RoundsReport report() const;

 private:
  int64_t MostToDraft() const;

  Session& session_;
  const Options options_;
  SweepTarget target_;
  DraftLength length_;
  DraftLevel level_;  // of the drafter
  TimeSpent verify_;
  TimeSpent draft_;
  TimeSpent refresh_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_DRAFTING_ROUNDS_H_
