#ifndef TIERCEL_RUNTIME_SEQUENCE_SESSION_H_
#define TIERCEL_RUNTIME_SEQUENCE_SESSION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "offload/kv/kv_store.h"
#include "offload/plan/tier_plan.h"
#include "offload/view/attention_shares.h"
#include "offload/view/retrieval.h"
#include "runtime/model/model.h"
#include "runtime/pass/pass.h"
#include "runtime/predict/session_plan.h"
#include "runtime/sequence/interrupted_prompt.h"
#include "runtime/sequence/prompt_cache.h"
#include "runtime/sequence/sequence.h"
#include "runtime/sequence/session_rank.h"
#include "runtime/sequence/time_spent.h"

namespace tiercel {

// A Session::Progress that goes on without a report.
inline constexpr auto kNoProgress = [](uint64_t, uint64_t) { return true; };

// One sequence: its tokens, their KV, and the means to compute more of it. A
// session and its forks share pages, and are used from one thread at a time;
// Cancel may be called from any thread.
//
// Invariants
//   1. kv length <= tokens: the KV lags behind tokens appended since the last
//      Forward, and holds nothing that belongs to other tokens.
//   2. A call that fails or is cancelled leaves tokens and KV as they were,
//      but some rows may have to be computed again: the last row; after
//      OpenText those of the last page; and all rows from the first page on
//      that can no longer be read from disk.
class Session {
 public:
  using Options = SessionOptions;

  // `model` must hold weights and outlive the session.
  // Errors: no_weights, invalid_argument, invalid_context, invalid_kv_type,
  // does_not_fit, out_of_memory.
  static absl::StatusOr<std::unique_ptr<Session>> Create(
      const Model& model, const Options& options);
  ~Session() { Rest(); }

  // Appends tokens without computing. Errors: invalid_token;
  // context_length_exceeded with both counts.
  absl::Status Append(const int32_t* ids, size_t count);

  // Computes the first `rows` of the tokens that the KV lacks (at most all),
  // all of them through one layer before the next; their last hidden states
  // stay readable through RowLogits until the next Forward. A decode step is a
  // Forward of one row. `progress(done, total)` counts token-layers; false
  // cancels.
  //
  // A prompt (more than kMaxStepRows rows) that is stopped leaves the sequence
  // as before, but its finished part is kept beside it: a Forward of the same
  // rows of the same tokens goes on there. Any other call drops it.
  //
  // The rows read the positions that `view` shows. Under another view than a
  // prompt's their KV is provisional, and so is all that follows it: steps go
  // on over it, and DropProvisional removes it. Errors: invalid_view.
  using Progress = PassProgress;
  absl::Status Forward(int64_t rows, Phase phase, Progress progress,
                       const View& view = View::Full());
  // For measurements: gives the first `rows` of the tokens that the KV lacks
  // (at most all) random keys and values, normal ones drawn from `seed`, in
  // place of a prompt's. `progress(done, rows)`. Errors: invalid_argument, in a
  // session whose prompts are shallow; cancelled, copy_failed, out_of_memory.
  absl::Status Fill(int64_t rows, uint64_t seed, Progress progress);
  // Cuts the KV to what a prompt of the same tokens would have left there; the
  // tokens stay.
  void DropProvisional();
  // BeginPrompt calls DropProvisional and begins a prompt: the tokens that
  // follow belong to it, not to the answer before it, until the next CatchUp.
  // AbandonPrompt removes these tokens again, and the answer goes on.
  void BeginPrompt();
  void AbandonPrompt();
  // Notes that the answer follows the first `length` tokens, which are held: a
  // prompt, or other tokens that the model did not write.
  void BeginAnswer(size_t length) { sequence_.BeginAnswer(length); }

  // Loads the KV of the beginning of an appended prompt from the prompt cache
  // (SessionOptions::texts), if another session has saved it and that saves
  // computing KvFolder::kLeastTokens or more. It has the bits that Forward
  // would have made. `progress` is called between pages, always with nothing
  // done. Does nothing without a cache. Errors: cancelled.
  absl::Status OpenText(Progress progress);
  // The number of layers of the last prompt that were finished before it began:
  // in this session, or, with a prompt cache, in another.
  int resumed_layers() const { return resumed_layers_; }
  // Called once a prompt is computed: a thread begins to write the KV of all
  // tokens to the prompt cache, if that is worth a file. It waits for an
  // earlier writing to end, unless cancelled. Failures are warnings.
  void SaveText();
  // Stops the writing soon; the next prompt begins it anew.
  void StopSaving();
  // The number of layers of the last prompt that other sessions find on disk
  // (PromptCache).
  int kept_layers() const;
  // Removes the prompt's file once a generation after it has ended, if the
  // cache saves unfinished prompts alone (PromptCacheFolder).
  void DropKeptPrompt();

  // A Forward of all the tokens that the KV lacks, at most kMaxStepRows, of
  // which Keep decides how many stay.
  absl::Status Sweep(Phase phase);
  // Keeps the tokens of the last Sweep up to `length` in all, and removes the
  // others. Errors: copy_failed, cancelled.
  absl::Status Keep(size_t length);

  // Rest gives the workspace to other sessions. A call that computes takes the
  // model's workspace, or a new one if others have that. After Rest the rows of
  // the last step are gone; all else stays readable.
  void Rest();

  // Logits of `count` rows of the last Forward or Sweep, from row `first` on,
  // at most kMaxStepRows: [count, vocab] in the host's memory, valid until the
  // next call. They lie right after the logits that NextLogits gave last.
  // Errors: out_of_memory, device_failed.
  absl::StatusOr<const float*> RowLogits(int64_t first, int64_t count);

  // Computes what the KV lacks, so that NextLogits are those of the token after
  // the last. The session must hold a token. Rows read what a prompt's do, and
  // go as deep. Errors: those of Forward; invalid_argument, for a prompt that
  // is shorter than its tail.
  absl::Status CatchUp(Phase phase, Progress progress);
  absl::Status CatchUp(Phase phase);
  // A CatchUp for the one token that the KV lacks, whose row reads `view`.
  absl::Status Step(Phase phase, const View& view);

  // Drafts, in a session that keeps a retrieval view, are passes of the model,
  // or of its first `layers`, that read and write that view alone, beside the
  // sequence. This is rank 0's view; with one rank there is no other.
  Retrieval* retrieval() { return first().retrieval.get(); }
  const Retrieval* retrieval() const { return first().retrieval.get(); }
  // These call Retrieval's functions for the views of all ranks.
  bool ViewHasRoom(int64_t rows) const;
  void KeepViewPlaces();
  std::optional<double> ViewCoverage() const;
  int64_t ViewEnd() const { return first().retrieval->kv().end(); }
  void TruncateView(int64_t end);
  void SetViewWindow(int64_t positions);
  // A CatchUp after which the view depends on the tokens alone.
  absl::Status CatchUpForDrafts(Phase phase);
  // Passes `ids`, at most kMaxStepRows, which follow the positions in the view;
  // RowLogits gives their logits. Errors: copy_failed, cancelled.
  absl::Status DraftForward(const int32_t* ids, int64_t rows, int layers);
  // A CatchUp for the one token that the KV lacks, whose row reads that view,
  // which has the types of the store; its K and V go to both. Errors: also
  // those of KvStore::BeginStep.
  absl::Status ViewStep(Phase phase);
  // Chooses the view's positions anew, by the last row of the last Sweep that
  // was kept. Errors: copy_failed, cancelled.
  absl::Status RefreshView();

  // These are rank 0's; the context, and all else that is not per rank, holds
  // for all ranks.
  const SessionSite& site() const { return first().site; }
  const TierPlan& plan() const { return first().plan; }
  const std::vector<std::unique_ptr<SessionRank>>& ranks() const {
    return ranks_;
  }
  // Bytes that a position takes in a layer on all ranks: more than the model's
  // if several ranks keep the same KV head.
  int64_t KvRowBytes() const;
  Traffic traffic() const;    // since the session was made
  TimeSpent Elapsed() const;  // from an arbitrary start, never decreasing
  // The model's warnings, and those of losses that cost speed alone.
  std::vector<std::string> warnings() const;
  // Memory in use now, weights included.
  MemoryUse memory() const;

  // [vocab], in the host's memory, valid until the next CatchUp; empty if not
  // known.
  absl::Span<const float> NextLogits() const {
    return {workspace_ != nullptr ? HostLogits() : next_logits_.data(),
            knows_next_ ? Vocab() : 0};
  }

  void Truncate(size_t length);  // keeps at most `length` tokens
  absl::StatusOr<std::unique_ptr<Session>> Fork() const;

  // A text among the tokens, with a question about it: tokens [begin, end) are
  // the text, [asked, answer) the question, and those from `answer` on the
  // answer.
  struct Reading {
    size_t begin;
    size_t end;  // below `asked`: a token lies between
    size_t asked;
    size_t answer;
  };
  // The share of the answer's attention that each run of the text gets
  // (AttentionShares). Run i has the positions from i * kRun on. The rows from
  // `end` on are computed anew, under no view and in their places: after an
  // error some of them may be missing. Errors: out_of_memory; those of Forward.
  absl::StatusOr<std::vector<double>> Attended(const Reading& reading,
                                               Progress progress);
  // The runs that lie entirely in the text. Errors: invalid_argument.
  absl::StatusOr<PositionRange> RunsOf(const Reading& reading) const;

  const Sequence& sequence() const { return sequence_; }
  // The number of pairs of layer and position whose K and V exist.
  int64_t KvEntries() const;
  int64_t room() const {  // tokens that still fit
    return plan().context - static_cast<int64_t>(sequence_.tokens().size());
  }
  const Model& model() const { return model_; }
  Stream& stream() { return *first().stream; }  // rank 0's

  // Async-signal-safe.
  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  void ClearCancel() { cancelled_.store(false, std::memory_order_relaxed); }
  bool cancelled() const {
    return cancelled_.load(std::memory_order_relaxed) ||
           (whole_ != nullptr && whole_->cancelled());
  }
  // Makes a Cancel of `whole`, which outlives this session's calls, stop this
  // session too.
  void CancelWith(const Session& whole) { whole_ = &whole; }

 private:
  Session(const Model& model, const View& prompt_view, Sequence sequence,
          std::shared_ptr<SessionRanks> together,
          std::shared_ptr<WorkspacePool> workspaces);

  SessionRank& first() const { return *ranks_.front(); }
  KvStore& kv() const { return *first().kv; }
  absl::Status PromiseWorkspace();
  absl::Status TakeWorkspace();
  void LeaveWorkspace();
  // Calls `part` for all ranks in parallel. Errors: those of RankGroup::Run;
  // out_of_memory, if there is no workspace.
  absl::Status EachRank(absl::FunctionRef<absl::Status(SessionRank&)> part);
  void DropInterrupted();
  void DropViews();
  // Returns true if a cancelled rank may stop half-way: with several none may,
  // since they would differ.
  bool StopsAlone() const { return ranks_.size() == 1 && cancelled(); }

  // Passes the first `rows` of the tokens that the KV lacks through all layers,
  // or goes on with a prompt that was stopped. `certain`: all rows will be
  // kept. `keeps`: a prompt whose layers go to the prompt cache, or come from
  // there. `*point`: the progress, if it is the same on all ranks.
  absl::Status Pass(int64_t rows, Phase phase, Progress progress,
                    const View& view, bool certain, bool keeps,
                    std::optional<PassPoint>* point);
  absl::Status WithPagesBeingSaved(absl::FunctionRef<absl::Status()> step);
  absl::Status TryPass(int64_t rows, Phase phase, Progress progress,
                       const View& view, bool certain, bool keeps,
                       std::optional<PassPoint>* point);
  absl::Status Commit(int64_t rows);
  // Undoes a step, unless it was kept as an interrupted prompt; the KV then is
  // the sequence's.
  void AbandonStep();
  // Notes that a step under `view` has added `rows` rows to the KV.
  void NoteAdded(int64_t rows, const View& view);
  void TruncateKv(int64_t length);
  // Drops the KV that the sequence no longer has.
  void MatchKv();
  void KeepPrompts(const PromptCacheFolder& folder);
  KvLayout WholeLayout() const;  // a page of all KV heads, as in files
  absl::Status LoadRanks(size_t rank, int64_t rows, KvStore::GivePages give,
                         const std::shared_ptr<PageFile>& text);
  void ForgetDamaged();
  absl::StatusOr<std::unique_ptr<HeldPages>> HoldRanks(
      int64_t length, KvStore::Cancelled cancelled);
  // If the finished layers of the prompt save more work than the KV of the
  // first `end` positions would: the number of positions that must precede the
  // prompt; else absent.
  std::optional<int64_t> PromptSavesMoreThan(int64_t end);
  bool KeepsPrompt(int64_t rows, Phase phase, const View& view) const;
  absl::Status GoOnFromDisk(int64_t rows, absl::FunctionRef<bool()> goes_on,
                            PassPoint* point);
  void KeepLayer(int layer, int64_t rows, absl::FunctionRef<bool()> goes_on);
  // The number of layers that KeepLayer gives at once, which is odd.
  int LayersTogether() const;
  // The total that progress gets for `rows` rows.
  uint64_t TokenLayers(int64_t rows) const {
    return static_cast<uint64_t>(rows) *
           static_cast<uint64_t>(model_.config.layers);
  }
  absl::Status LogitsInto(int64_t first, int64_t count, size_t row);
  // Rank 0's logits, in memory that the host can read.
  const float* HostLogits() const {
    return host_logits_.empty() ? first().logits.data() : host_logits_.data();
  }
  float* HostLogits() {
    return host_logits_.empty() ? first().logits.data() : host_logits_.data();
  }
  size_t Vocab() const { return static_cast<size_t>(model_.config.vocab); }

  const Model& model_;
  const View prompt_view_;
  Sequence sequence_;
  bool context_is_what_fits_ = false;  // less than the checkpoint's
  std::string crowded_;  // warning if the policy's memory limits it
  const std::shared_ptr<SessionRanks> together_;
  const std::shared_ptr<WorkspacePool> workspaces_;
  std::vector<std::unique_ptr<SessionRank>> ranks_;
  std::optional<InterruptedPrompt> interrupted_;
  // The workspace, whose parts the ranks have; null: the session rests.
  std::unique_ptr<Workspace> workspace_;
  // A copy of rank 0's logits in the host's memory, part of the workspace;
  // empty if the device's memory is the host's.
  std::vector<float> host_logits_;
  std::vector<float> next_logits_;  // [vocab]: valid while it rests
  bool knows_next_ = false;
  std::optional<PromptCacheFolder>
      prompt_cache_folder_;  // absent: no prompt cache
  int64_t saved_ = 0;        // leading tokens that are in a file
  // The cache file whose pages are read in place; null: none.
  std::shared_ptr<const KvFile> text_file_;
  std::shared_ptr<PageFile> text_pages_;
  int resumed_layers_ = 0;
  DiskUse disk_;
  std::atomic<bool> cancelled_{false};
  const Session* whole_ = nullptr;  // null: none; forks do not inherit it
  // Null: no prompt cache. It is destroyed first, since it holds pages.
  std::unique_ptr<PromptCache> prompt_cache_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SEQUENCE_SESSION_H_
