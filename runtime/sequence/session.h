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
#include "runtime/sequence/deep_spans.h"
#include "runtime/sequence/interrupted_prompt.h"
#include "runtime/sequence/saved_texts.h"
#include "runtime/sequence/session_rank.h"
#include "runtime/sequence/time_spent.h"

namespace tiercel {

// For Session::Progress, where nobody looks.
inline constexpr auto kNoProgress = [](uint64_t, uint64_t) { return true; };

// One sequence: its tokens, their KV, and the means to compute more of it.
// Used from one thread at a time, with its forks, which share pages with it;
// Cancel may be called from any.
//
// Invariants
//   1. kv length <= tokens: the KV lags behind tokens appended since the last
//      Forward, and holds nothing that belongs to other tokens.
//   2. Whatever fails or is cancelled leaves tokens and KV as they were, but
//      for the last row, after OpenText those of the last page, and those from
//      a page on that cannot be read from disk any more, which may have to be
//      computed again.
class Session {
 public:
  using Options = SessionOptions;

  // `model` must hold weights and outlive the session.
  // Errors: no_weights, invalid_argument, invalid_context, invalid_kv_type,
  // does_not_fit, out_of_memory.
  static absl::StatusOr<std::unique_ptr<Session>> Create(
      const Model& model, const Options& options);
  ~Session() { Rest(); }

  // Appends without computing.
  // Errors: invalid_token; context_length_exceeded with both counts.
  absl::Status Append(const int32_t* ids, size_t count);

  // Computes `rows` of the tokens the KV lacks (at most all), all of them
  // through one layer before the next; their last hidden states stay readable
  // through RowLogits until the next Forward. A decode step is a Forward of
  // one row. `progress(done, total)` in token-layers; false cancels.
  //
  // What was done of a prompt (more than kMaxStepRows rows) that is stopped
  // stays beside the sequence, which is as before: asked for the same rows of
  // the same tokens again, Forward goes on there. Anything else drops it.
  //
  // The rows read what `view` shows of the KV. Under another view than a
  // prompt's their KV is provisional, and so is all that follows it: steps go
  // on over it, and DropProvisional takes it away. Errors: invalid_view.
  using Progress = PassProgress;
  absl::Status Forward(int64_t rows, Station station, Progress progress,
                       const View& view = View::Full());
  // For measurements: gives the first `rows` of the tokens that the KV lacks
  // (at most all) keys and values that nobody computed, normal ones drawn from
  // `seed`, as if a prompt had left them there. `progress(done, rows)`. Errors:
  // invalid_argument, in a session whose prompts are shallow; cancelled,
  // copy_failed, out_of_memory.
  absl::Status Fill(int64_t rows, uint64_t seed, Progress progress);
  // From now on the KV holds what a prompt of the same tokens would have left
  // there, and nothing else; the tokens stay.
  void DropProvisional();
  // DropProvisional, and what follows belongs to a prompt, not to the answer
  // before it, until the next CatchUp; or to that answer after all, and the
  // tokens since were never there.
  void BeginPrompt();
  void AbandonPrompt();
  // The answer is what follows the first `length` tokens, which are held: a
  // prompt, or what else is not the model's own.
  void BeginAnswer(size_t length) { answer_begin_ = length; }

  // In a session that keeps texts (SessionOptions::texts), of a prompt that was
  // appended: the KV of what it begins with comes from disk, where another
  // session has left it, if that saves reading KvFolder::kLeastTokens or more;
  // bit for bit what Forward would have made. `progress` is asked between
  // pages, and told that none of the rest is done. Errors: cancelled.
  absl::Status OpenText(Progress progress);
  // How many layers of the last prompt were finished before it was asked for:
  // in this session, or, where texts are kept, in another.
  int resumed_layers() const { return resumed_layers_; }
  // When a prompt is there: a thread begins to write the KV of all tokens, if
  // so many are not on disk yet; once an earlier text is written, unless that
  // takes longer than whoever cancels waits. What goes wrong is a warning.
  void SaveText();
  // Ends the writing; the next prompt begins it anew. Soon.
  void StopSaving();
  // How many layers of the last prompt others find on disk (SavedTexts).
  int kept_layers() const;
  // Takes the prompt's file away, a generation behind it having ended, where
  // prompts are kept until then and no texts (TextsFolder).
  void DropKeptPrompt();

  // Forward of all the tokens that the KV lacks, at most kMaxStepRows, with the
  // outcome open until Keep.
  absl::Status Sweep(Station station);
  // The session ends after `length` tokens: those of the last Sweep up to there
  // hold, the others were never there. Errors: copy_failed, cancelled.
  absl::Status Keep(size_t length);

  // Whatever computes has the model's workspace from then on, or one of its own
  // where others have that. Rest leaves it to others: of the last step no row
  // is there after it, and what else the session says is the same.
  void Rest();

  // Logits of `count` rows of the last Forward or Sweep, from row `first` on,
  // at most kMaxStepRows: [count, vocab] in the host's memory, until the next
  // call. They lie behind those that NextLogits gave last.
  // Errors: out_of_memory, device_failed.
  absl::StatusOr<const float*> RowLogits(int64_t first, int64_t count);

  // Makes NextLogits those of the token after the last, computing what the KV
  // lacks. At least one token must be there.
  // Rows read what a prompt's do, and go as deep. Errors: those of Forward;
  // invalid_argument, for a prompt that is shorter than its tail.
  absl::Status CatchUp(Station station, Progress progress);
  absl::Status CatchUp(Station station);
  // CatchUp for the one token that the KV lacks, whose row reads `view`.
  absl::Status Step(Station station, const View& view);

  // Drafts, in a session that keeps a retrieval view: passes of the model, or
  // of its first `layers`, that read and write that view alone, beside the
  // sequence.
  // Rank 0's view; with one rank there is no other.
  Retrieval* retrieval() { return first().retrieval.get(); }
  const Retrieval* retrieval() const { return first().retrieval.get(); }
  // Retrieval's functions, of the views of all ranks.
  bool ViewHasRoom(int64_t rows) const;
  void KeepViewPlaces();
  std::optional<double> ViewCoverage() const;
  int64_t ViewEnd() const { return first().retrieval->kv().end(); }
  void TruncateView(int64_t end);
  void SetViewWindow(int64_t positions);
  // CatchUp, after which the view follows from the tokens alone.
  absl::Status CatchUpForDrafts(Station station);
  // Passes `ids`, which follow what the view holds, at most kMaxStepRows;
  // RowLogits gives theirs. Errors: copy_failed, cancelled.
  absl::Status DraftForward(const int32_t* ids, int64_t rows, int layers);
  // CatchUp for the one token that the KV lacks, whose row reads that view
  // instead, which has the types of the store; its K and V go to both. Errors:
  // also those of KvStore::BeginStep.
  absl::Status ViewStep(Station station);
  // Chooses anew what the view shows, by the last Sweep's last row that holds.
  // Errors: copy_failed, cancelled.
  absl::Status RefreshView();

  // These are rank 0's; contexts, and what else is of no rank, are all ranks'.
  const SessionSite& site() const { return first().site; }
  const TierPlan& plan() const { return first().plan; }
  const std::vector<std::unique_ptr<SessionRank>>& ranks() const {
    return ranks_;
  }
  // What a position takes in a layer on all ranks: more than the model's where
  // some keep the same KV head.
  int64_t KvRowBytes() const;
  Traffic traffic() const;    // since the session was made
  TimeSpent Elapsed() const;  // since whenever, always growing
  // The model's warnings, and what costs speed only.
  std::vector<std::string> warnings() const;
  // What is taken now, weights too.
  MemoryUse memory() const;

  // [vocab], in the host's memory until the next CatchUp; empty where they are
  // not known.
  absl::Span<const float> NextLogits() const {
    return {workspace_ != nullptr ? HostLogits() : next_logits_.data(),
            knows_next_ ? Vocab() : 0};
  }

  void Truncate(size_t length);  // at most the tokens held
  absl::StatusOr<std::unique_ptr<Session>> Fork() const;

  // A text among the tokens, and what was asked of it: tokens [begin, end) are
  // the text, [asked, answer) the question, those from `answer` on the answer.
  struct Reading {
    size_t begin;
    size_t end;  // at least one token between it and `asked`
    size_t asked;
    size_t answer;
  };
  // Where in the text the answer looks: of each run the share that
  // AttentionShares says. Run i has the positions from i * kRun on. The rows
  // from `end` on are computed anew, under no view, where they are: after an
  // error some of them may be missing. Errors: out_of_memory; those of Forward.
  absl::StatusOr<std::vector<double>> Attended(const Reading& reading,
                                               Progress progress);
  // The runs that lie whole in the text. Errors: invalid_argument.
  absl::StatusOr<PositionRange> RunsOf(const Reading& reading) const;

  const std::vector<int32_t>& tokens() const { return tokens_; }
  // How many of them precede the answer.
  int64_t answer_begin() const { return static_cast<int64_t>(answer_begin_); }
  int64_t kv_length() const { return kv().length(); }
  // Pairs of layer and position whose K and V exist.
  int64_t KvEntries() const;
  int64_t pending() const {  // tokens the KV lacks
    return static_cast<int64_t>(tokens_.size()) - kv().length();
  }
  int64_t room() const {  // tokens that still fit
    return plan().context - static_cast<int64_t>(tokens_.size());
  }
  int64_t first_position() const { return kv().begin(); }
  const Model& model() const { return model_; }
  Stream& stream() { return *first().stream; }  // of rank 0

  // Async-signal-safe.
  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  void ClearCancel() { cancelled_.store(false, std::memory_order_relaxed); }
  bool cancelled() const {
    return cancelled_.load(std::memory_order_relaxed) ||
           (whole_ != nullptr && whole_->cancelled());
  }
  // Cancel of `whole`, which outlives this session's calls, stops this one too.
  void CancelWith(const Session& whole) { whole_ = &whole; }

 private:
  Session(const Model& model, const View& prompt_view,
          std::shared_ptr<SessionRanks> together,
          std::shared_ptr<WorkspacePool> workspaces);

  SessionRank& first() const { return *ranks_.front(); }
  KvStore& kv() const { return *first().kv; }
  absl::Status PromiseWorkspace();
  absl::Status TakeWorkspace();
  void LeaveWorkspace();
  // Calls `part` for every rank at once. Errors: those of RankGroup::Run, and
  // out_of_memory, where there is no workspace.
  absl::Status EachRank(absl::FunctionRef<absl::Status(SessionRank&)> part);
  void DropInterrupted();
  void DropViews();
  // May a rank stop half-way? Of several none, or they would not be alike.
  bool StopsAlone() const { return ranks_.size() == 1 && cancelled(); }

  // Where the answer begins that the KV's next rows belong to.
  absl::StatusOr<std::optional<DeepSpans>> NextSpans() const;
  // Passes the tokens that the KV lacks, the first `rows` of them, through all
  // layers, or goes on with the prompt that was stopped. `certain`: all rows
  // will hold. `keeps`: a prompt that other sessions may go on with, or have
  // begun. `*point`: how far all ranks came, where they came as far.
  absl::Status Pass(int64_t rows, Station station, Progress progress,
                    const View& view, bool certain, bool keeps,
                    std::optional<PassPoint>* point);
  absl::Status WithPagesBeingSaved(absl::FunctionRef<absl::Status()> step);
  absl::Status TryPass(int64_t rows, Station station, Progress progress,
                       const View& view, bool certain, bool keeps,
                       std::optional<PassPoint>* point);
  absl::Status Commit(int64_t rows);
  // But for an interrupted prompt; the KV ends after `length` positions.
  void AbandonStep(int64_t length);
  // A step under `view` has added to a KV of `before` positions.
  void NoteAdded(int64_t before, const View& view);
  void TruncateKv(int64_t length);
  void KeepTexts(const TextsFolder& folder);
  KvLayout WholeLayout() const;  // of a page of all KV heads, as files have it
  absl::Status LoadRanks(size_t rank, int64_t rows, KvStore::GivePages give,
                         const std::shared_ptr<PageFile>& text);
  void ForgetDamaged();
  absl::StatusOr<std::unique_ptr<HeldPages>> HoldRanks(
      int64_t length, KvStore::Cancelled cancelled);
  // Where what is finished of the prompt saves more than the KV of the first
  // `end` positions would: how many must be there before it; absent: it does
  // not.
  std::optional<int64_t> PromptSavesMoreThan(int64_t end);
  bool KeepsPrompt(int64_t rows, Station station, const View& view) const;
  absl::Status GoOnFromDisk(int64_t rows, absl::FunctionRef<bool()> goes_on,
                            PassPoint* point);
  void KeepLayer(int layer, int64_t rows, absl::FunctionRef<bool()> goes_on);
  // How many layers KeepLayer gives at once: an odd number.
  int LayersTogether() const;
  // All that progress is told of so many rows.
  uint64_t TokenLayers(int64_t rows) const {
    return static_cast<uint64_t>(rows) *
           static_cast<uint64_t>(model_.config.layers);
  }
  absl::Status LogitsInto(int64_t first, int64_t count, size_t row);
  // They are rank 0's, where the host can read them.
  const float* HostLogits() const {
    return host_logits_.empty() ? first().logits.data() : host_logits_.data();
  }
  float* HostLogits() {
    return host_logits_.empty() ? first().logits.data() : host_logits_.data();
  }
  size_t Vocab() const { return static_cast<size_t>(model_.config.vocab); }

  const Model& model_;
  const View prompt_view_;
  bool context_is_what_fits_ = false;  // less than the checkpoint's
  std::string crowded_;  // ... for what the policy keeps; empty: it is not
  const std::shared_ptr<SessionRanks> together_;
  const std::shared_ptr<WorkspacePool> workspaces_;
  std::vector<std::unique_ptr<SessionRank>> ranks_;
  std::vector<int32_t> tokens_;
  size_t answer_begin_ = 0;
  int64_t settled_ = 0;  // of the KV, the beginning that is not provisional
  std::optional<DeepSpans> spans_;  // absent: all rows are alike
  bool prompt_begins_ = true;       // the next rows are a prompt's
  // When BeginPrompt was called last: prompt_begins_, and how many tokens.
  bool prompt_had_begun_ = true;
  size_t tokens_before_ = 0;
  std::optional<InterruptedPrompt> interrupted_;
  // What remains of it while the ranks have its parts; null: it rests.
  std::unique_ptr<Workspace> workspace_;
  // SessionRank::logits in the host's memory, of the workspace; empty where the
  // device's is that.
  std::vector<float> host_logits_;
  std::vector<float> next_logits_;  // [vocab]: those while it rests
  bool knows_next_ = false;
  // Positions of the KV from here on were filled, not computed.
  int64_t filled_from_ = kAllPositions;
  std::optional<TextsFolder> texts_folder_;  // absent: nothing is kept
  int64_t saved_ = 0;  // tokens that the text of a file begins with, too
  // The file of a text whose pages are read where they are; null: none.
  std::shared_ptr<const KvFile> text_file_;
  std::shared_ptr<PageFile> text_pages_;
  int resumed_layers_ = 0;
  DiskUse disk_;
  std::atomic<bool> cancelled_{false};
  const Session* whole_ = nullptr;  // null: none; not the fork's
  // Null: nothing is kept. Ends first: it holds pages.
  std::unique_ptr<SavedTexts> texts_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SEQUENCE_SESSION_H_
