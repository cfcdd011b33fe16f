#ifndef TIERCEL_RUNTIME_SESSION_BATCH_H_
#define TIERCEL_RUNTIME_SESSION_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/session/runner.h"
#include "runtime/session/session.h"
#include "runtime/session/shared_passes.h"
#include "runtime/session/strand.h"

namespace tiercel {

// Calls of several sessions of one model, made at once: steps for which they
// wait are passed together, so that a pass reads the weights once for all. A
// call gets the bits that it gets alone, whatever the others do, and its errors
// are its own.
//
// Each call is a strand: at any time one of them runs, or the thread of Run
// passes rows. So sessions may be forks of each other, and which steps are
// passed together follows from their kind and number of rows, not from time.
// Drafts go before sweeps, so that a sweep checks the blocks of all.
//
// A prompt goes in slices of kMaxStepRows rows while other calls have not
// ended, and a pass with steps that decode has the rows of one slice at most:
// a call that decodes waits for one pass of a bounded size, however many
// prompts are read beside it. Steps that cannot be passed together go in turns.
class Batch final : public SharedPasses {
 public:
  struct Call {
    Session& session;
    std::function<void()> run;  // computes with this session alone
    // Called on the thread of Run once the call has ended, and its session is
    // free; or with no_thread, if it could not begin. Null: nothing is.
    std::function<void(const absl::Status&)> ended = nullptr;
  };
  // Returns calls that begin beside those that are made; asked before every
  // pass, and before Run returns.
  using Arrivals = absl::FunctionRef<std::vector<Call>()>;
  // The numbers of what was passed together.
  struct Passes {
    int64_t passes = 0;
    int64_t sweeps = 0;  // the passes that are no drafts over views
    int64_t steps = 0;
    int64_t rows = 0;
    int64_t most_rows = 0;         // the most of one pass
    int64_t most_rows_beside = 0;  // the most of prompts, in one that decodes
  };

  // For sessions of `session`'s model. Errors: those of Runner::Fork.
  static absl::StatusOr<std::unique_ptr<Batch>> Create(const Session& session);
  // Cancels calls that have not ended, and waits for them.
  ~Batch() override { End(); }

  // Makes the calls, and returns when all have ended; throws what one of them,
  // or an OnCaller, throws. Errors, with no call begun: no_thread.
  absl::Status Run(std::vector<Call> calls,
                   std::optional<Arrivals> arrivals = {});
  // Runs `work` for the call that is running, on the thread of Run. Returns
  // false, without running it, if the batch is ending.
  bool OnCaller(absl::FunctionRef<void()> work);
  const Passes& passes() const { return passes_; }

  // ---- SharedPasses: called by the runner of the call that is running ----
  absl::Status Pass(absl::Span<JointStep> steps, Cancelled cancelled) override;
  bool OthersWait() const override;
  bool OthersMayCome() const override { return arrivals_may_come_; }
  absl::Status LetOthers() override;
  absl::StatusOr<const float*> RowLogits(int64_t first, int64_t count) override;

 private:
  // Steps that a call waits for, which go in one pass.
  struct Wanted {
    absl::Span<JointStep> steps;
    Cancelled cancelled;
    absl::Status status = {};

    const StepKind& kind() const { return steps.front().kind; }
    int64_t rows() const;
    bool waits() const { return steps.front().waits; }
  };
  // Rows of a call's steps whose logits are kept, from their row `skipped` on.
  struct LogitRows {
    int64_t first = 0;  // among those that are kept
    int64_t skipped = 0;
  };
  struct Member {
    Session& session;
    std::function<void(const absl::Status&)> ended;
    std::unique_ptr<Strand> strand = nullptr;
    Wanted* wanted = nullptr;                   // null: no step
    absl::FunctionRef<void()>* work = nullptr;  // null: none for OnCaller
    LogitRows logits = {};                      // its last step's
  };

  explicit Batch(std::unique_ptr<Runner> runner) : runner_(std::move(runner)) {}
  // Makes a member of the call. Errors: no_thread.
  absl::Status Add(Call call);
  // Lets a member run until it wants a step, or has ended and is a member no
  // more.
  void Resume(Member& member);
  // Members that can be passed together, those that have waited longest first.
  std::vector<Member*> TakeGroup();
  void PassGroup(absl::Span<Member* const> group);
  void End();

  const std::unique_ptr<Runner> runner_;
  std::list<Member> members_;
  std::deque<Member*> waiting_;  // for a step, the longest first
  std::vector<Member*> alone_;   // about to pass a step themselves
  Member* running_ = nullptr;
  // [rows that are kept, vocab]: a copy, since what a call does before its next
  // step needs the workspace.
  std::vector<float> logits_;
  bool arrivals_may_come_ = false;
  bool ends_ = false;
  Passes passes_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SESSION_BATCH_H_
