#ifndef TIERCEL_RUNTIME_SESSION_RUNNER_H_
#define TIERCEL_RUNTIME_SESSION_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "offload/kv/kv_store.h"
#include "offload/kv/view.h"
#include "runtime/model/model.h"
#include "runtime/pass/pass.h"
#include "runtime/plan/session_plan.h"
#include "runtime/plan/tier_plan.h"
#include "runtime/session/runner_rank.h"
#include "runtime/session/sequence_kv.h"
#include "runtime/session/shared_passes.h"

namespace tiercel {

// Passes rows of sequences through the layers of a model on its ranks, and
// gives their logits. It owns the ranks' streams and, during calls, a
// workspace; it knows no tokens but the ids that it is handed. Used from one
// thread at a time.
class Runner {
 public:
  using Cancelled = KvStore::Cancelled;

  // Plans sessions of `options`, whose memory is admitted by the caller
  // (MemoryAccount::Admission). The model holds weights and outlives it.
  // Errors: does_not_fit; those of RunnerRanks::Create.
  static absl::StatusOr<std::unique_ptr<Runner>> Create(
      const Model& model, const SessionOptions& options);
  ~Runner() { Rest(); }
  // Makes another with streams of its own, which works in the same workspaces.
  // Errors: those of RunnerRank::Fork.
  absl::StatusOr<std::unique_ptr<Runner>> Fork() const;

  const Model& model() const { return model_; }
  Stream& stream() const { return *first().stream; }  // rank 0's
  const std::vector<std::unique_ptr<RunnerRank>>& ranks() const {
    return ranks_;
  }
  RunnerRank& first() const { return *ranks_.front(); }
  std::vector<std::shared_ptr<const RankPlan>> plans() const;  // [rank]
  const RunnerRanks& together() const { return *together_; }

  // ---- Memory ----

  // Promises the workspace and, if memory is planned, allocates it, unless it
  // is large enough and in use by a session that will give it back.
  absl::Status PromiseWorkspace();
  // A call that computes takes the model's workspace, or a new one if others
  // have that. Rest gives it to other sessions: the rows of the last step are
  // gone then, and the kept row's logits stay.
  void Rest();
  // Begins a call that needs the kept row alone. Errors: out_of_memory.
  absl::Status ReadyKeptRow();

  // ---- Steps ----
  // RowLogits reads their rows until the next step. Errors of all: those of
  // RankGroup::Run, of the KV and of the ops; cancelled; out_of_memory, if
  // there is no workspace.

  struct Step {
    Phase phase;
    bool certain = true;  // all rows will be kept
    // A prompt that was stopped here goes on; absent: the step begins.
    std::optional<PassPoint> resume_at = {};
    // Called by rank 0 when a step has begun, with the point at which the rows
    // enter; it moves that on if it loads finished layers.
    absl::FunctionRef<absl::Status(PassPoint*)> begun;
    AfterLayer after_layer = kNothingAfter;  // called by each rank
  };
  // The end of a pass that failed.
  struct Stop {
    std::optional<PassPoint> point = {};  // if it is the same on all ranks
    bool unchanged = false;  // a prompt that was stopped before still is
  };
  // Passes the rows through all layers: by ShareSteps' passes if these can.
  absl::Status Pass(const SequenceRows& rows, const Step& step,
                    PassProgress progress, Cancelled cancelled, Stop* stop);
  // Has others pass its steps together with theirs; null: it passes them
  // itself. They must outlive its calls. Returns those that did so before.
  SharedPasses* ShareSteps(SharedPasses* others) {
    return std::exchange(others_, others);
  }
  // The most rows of a prompt to pass at a time; 0: all.
  int64_t PromptSlice() const;
  // Passes steps of several sequences together (RunnerRank::PassTogether), by
  // ShareSteps' passes if these can. Each has an error of its own; errors that
  // all share are returned.
  absl::Status PassTogether(absl::Span<JointStep> steps, Cancelled cancelled);
  // The most rows of steps that are passed together.
  int64_t MostRowsTogether() const;
  // Passes at most kMaxStepRows rows of one sequence, by PassTogether.
  // `certain`: all of them will be kept. They exist once the views, or the
  // pages, are told.
  absl::Status PassFew(const SequenceRows& rows, const StepKind& kind,
                       bool certain, Cancelled cancelled);
  // Chooses the positions of the views anew (Retrieval::Refresh).
  absl::Status RefreshViews(SequenceKv& kv, Cancelled cancelled);
  // Gives `rows` positions random keys and values (FillKv).
  absl::Status Fill(SequenceKv& kv, int64_t rows, uint64_t seed,
                    PassProgress progress, Cancelled cancelled);
  // Keeps the finished part of a step of `rows` rows, stopped at `point`, with
  // `kv`. Errors: also out_of_memory.
  absl::Status Suspend(SequenceKv& kv, int64_t rows, const PassPoint& point);

  // ---- Logits ----

  // Returns the logits of `count` rows of the last step, from row `first` on,
  // at most kMaxStepRows: [count, vocab], valid until the next call. They lie
  // right after the kept row. Errors: out_of_memory, device_failed.
  absl::StatusOr<const float*> RowLogits(int64_t first, int64_t count);
  // Keeps the logits of one row, until another is kept or DropKeptRow.
  absl::Status KeepRow(int64_t row);
  void DropKeptRow() { keeps_row_ = false; }
  // [vocab], valid until the next step or Rest; empty: none is kept.
  absl::Span<const float> KeptRow() const {
    return {workspace_ != nullptr ? HostLogits() : kept_row_.data(),
            keeps_row_ ? Vocab() : 0};
  }

 private:
  Runner(const Model& model, std::shared_ptr<RunnerRanks> together,
         std::shared_ptr<WorkspacePool> workspaces);

  absl::Status TakeWorkspace();
  // Calls `part` for all ranks in parallel; with their parts of `kv`, whose
  // views are dropped after an error.
  absl::Status EachRank(absl::FunctionRef<absl::Status(RunnerRank&)> part);
  absl::Status EachRankOf(
      SequenceKv& kv,
      absl::FunctionRef<absl::Status(RunnerRank&, RankKv&)> part);
  void LeaveWorkspace();
  bool CanSharePrompts() const;
  absl::Status BeginAlone();
  absl::Status LogitsInto(int64_t first, int64_t count, int64_t row);
  // Rank 0's logits.
  const float* HostLogits() const {
    return host_logits_.empty() ? HostAddress(first().logits.data())
                                : host_logits_.data();
  }
  float* HostLogits() {
    return host_logits_.empty() ? HostAddress(first().logits.data())
                                : host_logits_.data();
  }
  size_t Vocab() const { return static_cast<size_t>(model_.config.vocab); }

  const Model& model_;
  const std::shared_ptr<RunnerRanks> together_;
  const std::shared_ptr<WorkspacePool> workspaces_;
  std::vector<std::unique_ptr<RunnerRank>> ranks_;
  // The workspace, whose parts the ranks have; null: it rests.
  std::unique_ptr<Workspace> workspace_;
  // A copy of rank 0's logits, part of the workspace; empty if the device
  // computes in place.
  std::vector<float> host_logits_;
  SharedPasses* others_ = nullptr;  // null: it passes its steps itself
  bool shared_last_ = false;        // others passed its last step
  std::vector<float> kept_row_;     // [vocab]: valid while it rests
  bool keeps_row_ = false;
};

// Appends the logits of these rows of the runner's last step: [rows, vocab].
// Errors: those of RowLogits.
absl::Status AppendLogits(Runner& runner, PositionRange rows,
                          std::vector<float>* logits);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SESSION_RUNNER_H_
