#ifndef TIERCEL_RUNTIME_SESSION_SESSION_H_
#define TIERCEL_RUNTIME_SESSION_SESSION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "offload/kv/view.h"
#include "runtime/model/model.h"
#include "runtime/pass/pass.h"
#include "runtime/plan/session_plan.h"
#include "runtime/session/attended.h"
#include "runtime/session/cancellation.h"
#include "runtime/session/draft_view.h"
#include "runtime/session/runner.h"
#include "runtime/session/sequence.h"
#include "runtime/session/sequence_kv.h"
#include "runtime/session/session_prompt_cache.h"
#include "runtime/session/time_spent.h"

namespace tiercel {

// A sequence with its KV, and the means to compute more of it: it keeps the
// tokens, the stores, the workspace and the prompt cache in step. A session and
// its forks share pages, and are used from one thread at a time; its
// cancellation may be used from any thread.
//
// Invariants
//   1. kv length <= tokens: the KV lags behind tokens appended since the last
//      Forward, and holds nothing that belongs to other tokens.
//   2. A call that fails or is cancelled leaves the tokens as they were. The KV
//      may have become shorter, and the next call computes its rows again: the
//      last row; after SessionPromptCache::Open those of the last page; and
//      those from the first page on that can no longer be read from disk.
class Session {
 public:
  using Options = SessionOptions;
  using Progress = PassProgress;

  // `model` must hold weights and outlive the session.
  // Errors: no_weights, invalid_argument, invalid_context, invalid_kv_type,
  // does_not_fit, out_of_memory.
  static absl::StatusOr<std::unique_ptr<Session>> Create(
      const Model& model, const Options& options);
  absl::StatusOr<std::unique_ptr<Session>> Fork() const;

  // ---- Its parts ----

  const Model& model() const { return runner_->model(); }
  const Sequence& sequence() const { return sequence_; }
  SequenceKv& kv() const { return *kv_; }
  Runner& runner() const { return *runner_; }
  // The view that drafts read, in a session that keeps one.
  DraftView& draft_view() { return draft_view_; }
  // Null: no prompt cache.
  SessionPromptCache* prompt_cache() const { return prompt_cache_.get(); }
  Cancellation& cancellation() const { return cancellation_; }

  // ---- Tokens ----

  // Appends tokens without computing. Errors: invalid_token;
  // context_length_exceeded with both counts.
  absl::Status Append(const int32_t* ids, size_t count);
  void Truncate(size_t length);  // keeps at most `length` tokens
  // BeginPrompt calls DropProvisional and begins a prompt: the tokens that
  // follow belong to it, not to the answer before it, until the next CatchUp.
  // AbandonPrompt removes these tokens again, and the answer goes on.
  void BeginPrompt();
  void AbandonPrompt();
  // Notes that the answer follows the first `length` tokens, which are held: a
  // prompt, or other tokens that the model did not write.
  void BeginAnswer(size_t length) { sequence_.BeginAnswer(length); }

  // ---- Steps ----

  // Computes the first `rows` of the tokens that the KV lacks (at most all),
  // all of them through one layer before the next; their last hidden states
  // stay readable through Runner::RowLogits until the next Forward. A decode
  // step is a Forward of one row. `progress(done, total)` counts token-layers;
  // false cancels.
  //
  // A prompt (more than kMaxStepRows rows) that is stopped leaves the sequence
  // as before, but its finished part is kept beside it: a Forward of the same
  // rows of the same tokens goes on there. Any other call drops it.
  //
  // The rows read the positions that `view` shows. Under another view than a
  // prompt's their KV is provisional, and so is all that follows it: steps go
  // on over it, and DropProvisional removes it. Errors: invalid_view.
  absl::Status Forward(int64_t rows, Phase phase, Progress progress,
                       const View& view = View::Full());
  // Computes what the KV lacks, so that NextLogits are those of the token after
  // the last. The session must hold a token. Rows read what a prompt's do, and
  // go as deep. Errors: those of Forward; invalid_argument, for a prompt that
  // is shorter than its tail.
  absl::Status CatchUp(Phase phase, Progress progress = kNoProgress);
  // [vocab], valid until the next CatchUp; empty if not known.
  absl::Span<const float> NextLogits() const { return runner_->KeptRow(); }
  // A Forward of all the tokens that the KV lacks, at most kMaxStepRows, of
  // which Keep decides how many stay.
  //
  // The sweep also passes the rows of `others`, tokens that might be there in
  // place of those, over copies of the KV that end with it. (*first_rows)[i] is
  // the first row of others[i] among those of the step; -1: there was no room
  // for it.
  absl::Status Sweep(Phase phase,
                     absl::Span<const std::vector<int32_t>> others = {},
                     std::vector<int64_t>* first_rows = nullptr);
  // Keeps the tokens of the last Sweep up to `length` in all, and removes the
  // others. Errors: copy_failed, cancelled.
  absl::Status Keep(size_t length);
  // For measurements: gives the first `rows` of the tokens that the KV lacks
  // (at most all) random keys and values, normal ones drawn from `seed`, in
  // place of a prompt's. `progress(done, rows)`. Errors: invalid_argument, in a
  // session whose prompts are shallow; cancelled, copy_failed, out_of_memory.
  absl::Status Fill(int64_t rows, uint64_t seed, Progress progress);
  // Cuts the KV to what a prompt of the same tokens would have left there; the
  // tokens stay.
  void DropProvisional();
  // The share of the question's attention that each run of the text gets, and
  // its excess
  // (AttentionShares). Run i has the positions from i * kRun on. The rows from
  // `end` on are computed anew, under no view and in their places: after an
  // error some of them may be missing. Errors: out_of_memory; those of RunsOf,
  // of Append and of Forward.
  absl::StatusOr<AttentionShares::Found> Attended(const Reading& reading,
                                                  Progress progress);

  // ---- Its use ----

  Traffic traffic() const;    // since the session was made
  TimeSpent Elapsed() const;  // from an arbitrary start, never decreasing
  // The model's warnings, and those of losses that cost speed alone.
  std::vector<std::string> warnings() const;

 private:
  friend class DraftView;  // its steps are the session's

  Session(const View& prompt_view, Sequence sequence,
          std::unique_ptr<Runner> runner, std::unique_ptr<SequenceKv> kv);

  SessionPromptCache::Parts PromptCacheParts();
  // The first `count` rows of the tokens that the KV lacks.
  SequenceRows PendingRows(int64_t count, const View& view) const {
    return {*kv_, sequence_.tokens().data() + sequence_.kv_length(), count,
            view};
  }
  // Passes these rows through all layers, or goes on with a prompt that was
  // stopped. `certain`: all rows will be kept. `keeps`: a prompt whose layers
  // go to the prompt cache, or come from there.
  absl::Status Pass(int64_t rows, Phase phase, Progress progress,
                    const View& view, bool certain, bool keeps,
                    Runner::Stop* stop);
  absl::Status TryPass(int64_t rows, Phase phase, Progress progress,
                       const View& view, bool certain, bool keeps,
                       Runner::Stop* stop);
  // Checks that the tokens can be appended. Errors: those of Append.
  absl::Status CheckFit(const int32_t* ids, size_t count) const;
  // Calls `read` while the session holds `tokens` in the place of its own from
  // `from` on, of which KV is missing afterwards; the logits that it knows
  // stay. Errors: those of Append, and of `read`.
  absl::Status InPlaceOf(size_t from, const std::vector<int32_t>& tokens,
                         absl::FunctionRef<absl::Status()> read);
  absl::Status WithPagesBeingSaved(absl::FunctionRef<absl::Status()> step);
  absl::Status SweepBeside(Phase phase,
                           absl::Span<const std::vector<int32_t>> others,
                           std::vector<int64_t>* first_rows);
  absl::Status ForwardAll(Phase phase, Progress progress, const View& view,
                          const SequenceExtent* extent, int64_t* last);
  // Adds the first `rows` rows of a step under `view` to the KV.
  absl::Status Commit(int64_t rows, const View& view);
  // Undoes a step, unless it was kept as an interrupted prefill; the KV then is
  // the sequence's.
  void AbandonStep();
  // Cuts the KV before the first page that cannot be read, so that it is
  // computed again. A cache file that is at fault is removed. During a sweep it
  // does nothing: the sweep's end does it.
  void ForgetDamaged();
  // Drops the KV from position `length` on; the tokens stay.
  void TruncateKv(int64_t length);
  // Drops the KV of tokens that the sequence no longer has.
  void MatchKv();

  const View prompt_view_;
  bool context_is_what_fits_ = false;  // less than the checkpoint's
  std::string crowded_;  // warning if the policy's memory limits it
  bool sweeps_ = false;  // a sweep is on its way
  mutable Cancellation cancellation_;
  Sequence sequence_;
  const std::unique_ptr<Runner> runner_;
  const std::unique_ptr<SequenceKv> kv_;  // ends before the runner's streams
  DraftView draft_view_;
  // The last member: it holds pages, and uses the others.
  std::unique_ptr<SessionPromptCache> prompt_cache_;
};

// The number of pairs of layer and position whose K and V exist.
int64_t KvEntries(const Session& session);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SESSION_SESSION_H_
