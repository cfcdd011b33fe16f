#include "runtime/sequence/session.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
absl::StatusOr<std::unique_ptr<Session>> Session::Create(
    const Model& model, const Options& options) {
  if (model.weights == nullptr) {
    return UsageError("no_weights",
                      "session: the model was opened without its weights");
  }
  RETURN_IF_ERROR(CheckSessionOptions(model.config, options));
  ASSIGN_OR_RETURN(const std::vector<WeightSizes> sizes, model.MeasureRanks());
  std::vector<std::unique_ptr<Stream>> streams;
  int threads = std::numeric_limits<int>::max();
  for (int rank = 0; rank < model.ranks(); ++rank) {
    ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream,
                     model.machine_of(rank).NewStream());
    threads = std::min(threads, stream->pool().num_threads());
    streams.push_back(std::move(stream));
  }
  // Held until the memory is promised: a session that another thread makes
  // meanwhile would count the same room.
  const std::lock_guard<std::mutex> admission(MemoryAccount::Admission());
  const std::shared_ptr<WorkspacePool> workspaces = model.Workspaces();
  std::vector<int64_t> taken;  // [rank]
  for (int rank = 0; rank < model.ranks(); ++rank) {
    taken.push_back(model.machine_of(rank).memory().used());
  }
  // This comes before the plan, which then sees the GPU memory that a library
  // takes.
  ASSIGN_OR_RETURN(std::shared_ptr<SessionRanks> together,
                   SessionRanks::Create(model, streams));
  std::vector<SessionSite> sites;
  for (int rank = 0; rank < model.ranks(); ++rank) {
    const auto at = static_cast<size_t>(rank);
    WeightSizes weights = sizes[at];
    weights.bytes = taken[at];
    sites.push_back(SiteOf(model, weights, options, threads, rank));
  }
  ASSIGN_OR_RETURN(const std::vector<TierPlan> plans,
                   PlanRanks(sites, options.context));
  const TierPlan& plan = plans.front();
  std::optional<DeepSpans> spans;
  if (options.depth.has_value()) {
    spans.emplace(options.depth->Of(model.config), model.AssistantHeader(),
                  options.first_position);
  }
  std::unique_ptr<Session> session(
      new Session(model, options.prompt_view.Within(plan.context),
                  Sequence(options.first_position, std::move(spans)),
                  std::move(together), workspaces));
  for (size_t i = 0; i < sites.size(); ++i) {
    session->ranks_.push_back(std::make_unique<SessionRank>(
        model, sites[i], plans[i], std::move(streams[i]), session->together_,
        threads));
    SessionRank& rank = *session->ranks_.back();
    RETURN_IF_ERROR(
        rank.MakeKv(options.texts.has_value() ? &*options.texts : nullptr));
  }
  RETURN_IF_ERROR(session->PromiseWorkspace());
  // A BLAS library computes other bits than our kernels, and a file does not
  // say which it has.
  const bool own_bits = session->stream().blas() == nullptr;
  if (options.KeepsPrompts() && own_bits && !plan.on_device) {
    session->KeepPrompts(*options.texts);
  }
  session->context_is_what_fits_ =
      options.context == 0 && plan.context < model.config.context;
  if (session->context_is_what_fits_) {
    session->crowded_ = CrowdedBy(sites, model.config.context);
  }
  return session;
}

Session::Session(const Model& model, const View& prompt_view, Sequence sequence,
                 std::shared_ptr<SessionRanks> together,
                 std::shared_ptr<WorkspacePool> workspaces)
    : model_(model),
      prompt_view_(prompt_view),
      sequence_(std::move(sequence)),
      together_(std::move(together)),
      workspaces_(std::move(workspaces)),
      next_logits_(Vocab()) {}

// ---- The workspace ----

// Promises the workspace and, if memory is planned, allocates it, unless it is
// large enough and in use by a session that will give it back.
absl::Status Session::PromiseWorkspace() {
  bool larger = false;
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    const WorkspaceSize size = ranks_[rank]->Needs();
    const WorkspaceSize there = workspaces_->Promised(rank);
    larger = larger || there.Or(size).DeviceBytes() > there.DeviceBytes();
    workspaces_->Promise(rank, size);
  }
  if (workspaces_->InUse() && !larger) return absl::OkStatus();
  absl::Status status = TakeWorkspace();
  for (const auto& rank : ranks_) {
    if (status.ok()) status = rank->ReserveAll();
  }
  Rest();
  return status;
}

absl::Status Session::TakeWorkspace() {
  if (workspace_ != nullptr) return absl::OkStatus();
  workspace_ = workspaces_->Take();
  absl::Cleanup undo = [this] { LeaveWorkspace(); };
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    ranks_[rank]->Use(std::move(workspace_->ranks[rank]));
  }
  host_logits_ = std::move(workspace_->host_logits);
  if (!stream().on_host()) {
    host_logits_.resize(static_cast<size_t>(LogitRows()) * Vocab());
  }
  if (knows_next_) {
    RETURN_IF_ERROR(first().ReserveLogits());
    std::copy_n(next_logits_.data(), Vocab(), HostLogits());
  }
  std::move(undo).Cancel();
  return absl::OkStatus();
}

void Session::Rest() {
  if (workspace_ == nullptr) return;
  if (knows_next_) std::copy_n(HostLogits(), Vocab(), next_logits_.data());
  LeaveWorkspace();
}

void Session::LeaveWorkspace() {
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    workspace_->ranks[rank] = ranks_[rank]->Release();
  }
  workspace_->host_logits = std::move(host_logits_);
  workspaces_->GiveBack(std::move(workspace_));
}

absl::Status Session::EachRank(
    absl::FunctionRef<absl::Status(SessionRank&)> part) {
  RETURN_IF_ERROR(TakeWorkspace());
  const absl::Status status = together_->gather->Run([&](int index) {
    SessionRank& rank = *ranks_[static_cast<size_t>(index)];
    if (absl::Status s = part(rank); !s.ok() || rank.alone()) return s;
    // A GPU failure must show here, since other ranks may wait for it.
    return together_->gather->Finish(*rank.stream, index);
  });
  if (!status.ok()) DropViews();
  return status;
}

// Drops all views after an error, since one rank's may be gone: ranks must
// choose the same positions, and draft equally far.
void Session::DropViews() {
  if (ranks_.size() == 1) return;
  for (const auto& rank : ranks_) {
    if (rank->retrieval != nullptr) rank->retrieval->Drop();
  }
}

Traffic Session::traffic() const {
  Traffic traffic;
  for (const auto& rank : ranks_) {
    Traffic own;
    if (rank->tier != nullptr) own.link = rank->tier->engine->ledger();
    if (rank->tier != nullptr && rank->tier->spill != nullptr) {
      own.disk.read_bytes = rank->tier->disk->read_bytes();
      own.disk.written_bytes = rank->tier->spill->written_bytes();
    }
    own.moves = rank->moves();
    traffic += own;
    traffic.ranks.push_back(rank->traffic());
  }
  traffic += Traffic{.disk = disk_};
  return traffic;
}

TimeSpent Session::Elapsed() const {
  TimeSpent elapsed;
  elapsed.seconds = SecondsBetween({}, model_.machine->clock().Now());
  // Links work in parallel: the busiest counts.
  for (const auto& rank : ranks_) {
    if (rank->tier == nullptr) continue;
    double seconds = 0;
    for (const LinkUse& use : rank->tier->engine->ledger()) {
      seconds += use.busy_seconds;
    }
    elapsed.link_seconds = std::max(elapsed.link_seconds, seconds);
  }
  return elapsed;
}

MemoryUse Session::memory() const {
  MemoryUse use;
  for (const auto& rank : ranks_) {
    use.host += rank->kv->HostBytes();
    use.device += rank->machine().memory().used();
  }
  return use;
}

int64_t Session::KvRowBytes() const {
  int64_t bytes = 0;
  for (const auto& rank : ranks_) {
    const KvLayout& layout = rank->site.layout;
    bytes += layout.kv_heads * (layout.KRowBytes() + layout.VRowBytes());
  }
  return bytes;
}

std::vector<std::string> Session::warnings() const {
  std::vector<std::string> all = model_.warnings;
  // A session that reads everything needs no training for its depth.
  if (sequence_.spans().has_value() && !sequence_.spans()->Reads().IsFull()) {
    std::string untrained = UntrainedAt(site(), model_, plan().context);
    if (!untrained.empty()) all.push_back(std::move(untrained));
  }
  if (!crowded_.empty()) all.push_back(crowded_);
  if (!together_->warning.empty()) all.push_back(together_->warning);
  for (const auto& rank : ranks_) {
    if (rank->placement == nullptr) continue;
    for (const std::string& warning : rank->placement->warnings()) {
      if (std::find(all.begin(), all.end(), warning) == all.end()) {
        all.push_back(warning);
      }
    }
  }
  if (prompt_cache_ != nullptr) {
    prompt_cache_->Settle();
    const std::vector<std::string>& more = prompt_cache_->warnings();
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

absl::Status Session::Append(const int32_t* ids, size_t count) {
  if (static_cast<uint64_t>(room()) < count) {
    constexpr size_t kMost = size_t{1} << 62;  // beyond any sum
    const auto length = static_cast<int64_t>(sequence_.tokens().size() +
                                             std::min(count, kMost));
    const int64_t checkpoint = model_.config.context;
    if (context_is_what_fits_ && length <= checkpoint) {
      std::vector<SessionSite> sites;
      for (const auto& rank : ranks_) sites.push_back(rank->site);
      RETURN_IF_ERROR(CheckRanksFit(sites, length));
    }
    return InputError(
        "context_length_exceeded",
        absl::StrCat("the text has ", length, " tokens, the context holds ",
                     plan().context));
  }
  for (size_t i = 0; i < count; ++i) {
    if (ids[i] < 0 || ids[i] >= model_.config.vocab) {
      return UsageError(
          "invalid_token",
          absl::StrCat("token ", i, ": got id ", ids[i],
                       ", the vocabulary has 0 to ", model_.config.vocab - 1));
    }
  }
  sequence_.Append(ids, count);
  knows_next_ = false;
  return absl::OkStatus();
}

// Puts the logits of `count` rows of the last step one after the other, from
// row `row` on.
absl::Status Session::LogitsInto(int64_t first_row, int64_t count, size_t row) {
  if (absl::Status s = EachRank([&](SessionRank& rank) {
        return rank.LogitsInto(first_row, count, row);
      });
      !s.ok() || stream().on_host()) {
    return s;
  }
  // One copy and one wait bring the step's results to the host.
  RETURN_IF_ERROR(
      stream().Copy(host_logits_.data() + row * Vocab(),
                    first().logits.data() + row * Vocab(),
                    static_cast<size_t>(count) * Vocab() * sizeof(float)));
  return stream().Synchronize();
}

absl::StatusOr<const float*> Session::RowLogits(int64_t first, int64_t count) {
  if (workspace_ == nullptr) {
    return InternalError("internal", "no step's rows are there");
  }
  RETURN_IF_ERROR(LogitsInto(first, count, /*row=*/1));
  return HostLogits() + Vocab();
}

absl::Status Session::CatchUp(Phase phase) {
  return CatchUp(phase, kNoProgress);
}

absl::Status Session::CatchUp(Phase phase, Progress progress) {
  if (sequence_.tokens().empty()) {
    return UsageError("empty_prompt",
                      "the session holds no token to continue from");
  }
  if (sequence_.pending() == 0) {
    if (knows_next_) return TakeWorkspace();  // the logits are read there
    // The KV is complete, the logits are not known: the last row is computed
    // once more. Its bits do not depend on the rows that run with it.
    TruncateKv(sequence_.kv_length() - 1);
  }
  ASSIGN_OR_RETURN(std::optional<DeepSpans> spans, sequence_.NextSpans());
  View view = prompt_view_;
  if (spans.has_value()) {
    const DeepSpans& next = *spans;
    const int64_t answer = next.answer_begin() - sequence_.first_position();
    // Rows of a new answer's tail that exist end below the cut: they are
    // computed again.
    if (sequence_.prompt_begins() && sequence_.kv_length() > answer) {
      TruncateKv(answer);
    }
    if (retrieval() == nullptr) {
      view = next.Reads();
    } else {
      for (const auto& rank : ranks_) {
        rank->retrieval->ShowAbove({.layers = next.depth().cut,
                                    .anchor = next.depth().anchor,
                                    .answer_begin = next.answer_begin()});
      }
    }
  }
  const int64_t rows = sequence_.pending();
  RETURN_IF_ERROR(Forward(rows, phase, progress, view));
  sequence_.EndPrompt(std::move(spans));
  RETURN_IF_ERROR(LogitsInto(rows - 1, 1, /*row=*/0));
  knows_next_ = true;
  return absl::OkStatus();
}

absl::Status Session::Step(Phase phase, const View& view) {
  RETURN_IF_ERROR(Forward(/*rows=*/1, phase, kNoProgress, view));
  RETURN_IF_ERROR(LogitsInto(0, 1, /*row=*/0));
  knows_next_ = true;
  return absl::OkStatus();
}

absl::Status Session::CatchUpForDrafts(Phase phase) {
  absl::Status status = CatchUp(phase);
  const auto fresh = [](const auto& rank) { return rank->retrieval->fresh(); };
  if (status.ok() && !std::all_of(ranks_.begin(), ranks_.end(), fresh)) {
    // CatchUp had fewer rows than choose a view, or went on with a prompt that
    // had been stopped, whose first half the view did not see.
    TruncateKv(std::max<int64_t>(
        0, sequence_.kv_length() - retrieval()->evidence_rows()));
    knows_next_ = false;
    status = CatchUp(phase);
  }
  return status;
}

void Session::DropInterrupted() {
  interrupted_.reset();
  for (const auto& rank : ranks_) rank->DropParked();
}

void Session::TruncateKv(int64_t length) {
  sequence_.TruncateKv(length);
  DropInterrupted();
  for (const auto& rank : ranks_) rank->kv->Truncate(length);
  saved_ = std::min(saved_, length);
}

void Session::MatchKv() {
  if (kv().length() > sequence_.kv_length()) TruncateKv(sequence_.kv_length());
}

void Session::DropProvisional() {
  if (sequence_.IsSettled()) return;
  TruncateKv(sequence_.settled());
  knows_next_ = false;
}

void Session::BeginPrompt() {
  resumed_layers_ = 0;
  if (prompt_cache_ != nullptr) prompt_cache_->NoteKept(0);
  DropProvisional();
  sequence_.BeginPrompt();
}

void Session::AbandonPrompt() {
  const size_t before = sequence_.tokens().size();
  sequence_.AbandonPrompt();
  if (sequence_.tokens().size() < before) knows_next_ = false;
  MatchKv();
}

int64_t Session::KvEntries() const {
  const int layers = model_.config.layers;
  return site().depth.has_value()
             ? sequence_.spans()->Entries(layers, kv().end())
             : layers * sequence_.kv_length();
}

void Session::Truncate(size_t length) {
  if (length >= sequence_.tokens().size()) return;
  sequence_.Truncate(length);
  knows_next_ = false;
  MatchKv();
}

bool Session::ViewHasRoom(int64_t rows) const {
  return std::all_of(ranks_.begin(), ranks_.end(), [rows](const auto& rank) {
    return rank->retrieval->HasRoom(rows);
  });
}

void Session::KeepViewPlaces() {
  for (const auto& rank : ranks_) rank->retrieval->KeepPlaces();
}

// Returns the mean over layers and query heads.
std::optional<double> Session::ViewCoverage() const {
  double sum = 0;
  int64_t heads = 0;
  for (const auto& rank : ranks_) {
    if (!model_.split->IsFirstOfHeads(rank->site.rank)) continue;
    const std::optional<double> coverage = rank->retrieval->coverage();
    if (!coverage.has_value()) return std::nullopt;
    sum += *coverage * rank->site.QueryHeads();
    heads += rank->site.QueryHeads();
  }
  return ranks_.size() == 1 ? first().retrieval->coverage()
                            : sum / static_cast<double>(heads);
}

void Session::TruncateView(int64_t end) {
  for (const auto& rank : ranks_) rank->retrieval->kv().Truncate(end);
}

void Session::SetViewWindow(int64_t positions) {
  for (const auto& rank : ranks_) rank->retrieval->kv().SetWindow(positions);
}

absl::StatusOr<std::unique_ptr<Session>> Session::Fork() const {
  std::unique_ptr<Session> copy(
      new Session(model_, prompt_view_, sequence_, together_, workspaces_));
  for (const auto& rank : ranks_) {
    ASSIGN_OR_RETURN(std::unique_ptr<SessionRank> forked, rank->Fork());
    copy->ranks_.push_back(std::move(forked));
  }
  copy->context_is_what_fits_ = context_is_what_fits_;
  copy->crowded_ = crowded_;
  if (prompt_cache_folder_.has_value())
    copy->KeepPrompts(*prompt_cache_folder_);
  copy->saved_ = saved_;
  copy->text_file_ = text_file_;
  copy->text_pages_ = text_pages_;
  if (knows_next_) {
    std::copy_n(NextLogits().data(), Vocab(), copy->next_logits_.data());
    copy->knows_next_ = true;
  }
  return copy;
}

}  // namespace tiercel
