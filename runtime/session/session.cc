#include "runtime/session/session.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

namespace {

// The parts of a session that take memory.
struct Parts {
  std::unique_ptr<Runner> runner;
  std::unique_ptr<SequenceKv> kv;
};

absl::StatusOr<Parts> TakeParts(const Model& model,
                                const SessionOptions& options,
                                const PromptCacheFolder* folder) {
  ASSIGN_OR_RETURN(std::unique_ptr<Runner> runner,
                   Runner::Create(model, options));
  ASSIGN_OR_RETURN(std::unique_ptr<SequenceKv> kv,
                   SequenceKv::Create(model, runner->plans(),
                                      *runner->together().gather, folder));
  RETURN_IF_ERROR(runner->PromiseWorkspace());
  return Parts{std::move(runner), std::move(kv)};
}

// Other processes may take memory of a GPU between the reading of what is free
// and the last allocation. All is given back then, and planned again with what
// they left: fewer pages stay on the device.
absl::StatusOr<Parts> TakePartsOfWhatIsLeft(const Model& model,
                                            const SessionOptions& options,
                                            const PromptCacheFolder* folder) {
  constexpr int kMostTries = 4;
  const Device& device = model.machine->device();
  const bool is_shared = device.apart() && !device.simulated();
  absl::StatusOr<Parts> parts = TakeParts(model, options, folder);
  for (int tries = 1; is_shared && tries < kMostTries &&
                      CodeOf(parts.status()) == "out_of_memory";
       ++tries) {
    parts = TakeParts(model, options, folder);
  }
  return parts;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Create(
    const Model& model, const Options& options) {
  if (model.weights == nullptr) {
    return UsageError("no_weights",
                      "session: the model was opened without its weights");
  }
  RETURN_IF_ERROR(CheckSessionOptions(model.config, options));
  // Held until the memory is promised: a session that another thread makes
  // meanwhile would count the same room.
  const std::lock_guard<std::mutex> admission(MemoryAccount::Admission());
  const PromptCacheFolder* const folder =
      options.texts.has_value() ? &*options.texts : nullptr;
  ASSIGN_OR_RETURN(Parts parts, TakePartsOfWhatIsLeft(model, options, folder));
  std::optional<SequenceExtent> extent;
  if (options.extent.has_value()) {
    extent.emplace(*options.extent, model.AssistantHeader(),
                   options.first_position);
  }
  const TierPlan& plan = parts.kv->plan();
  std::unique_ptr<Session> session(new Session(
      options.prompt_view.Within(plan.context),
      Sequence(options.first_position, plan.context, std::move(extent)),
      std::move(parts.runner), std::move(parts.kv)));
  // A BLAS library computes other bits than our kernels, and a file does not
  // say which it has.
  const bool own_bits = session->runner().stream().blas() == nullptr;
  if (options.KeepsPrompts() && own_bits && !plan.on_device) {
    session->prompt_cache_ = std::make_unique<SessionPromptCache>(
        *folder, session->PromptCacheParts());
  }
  session->context_is_what_fits_ =
      options.context == 0 && plan.context < model.config.context;
  if (session->context_is_what_fits_) {
    session->crowded_ = CrowdedBy(session->kv().sites(), model.config.context);
  }
  return session;
}

Session::Session(const View& prompt_view, Sequence sequence,
                 std::unique_ptr<Runner> runner, std::unique_ptr<SequenceKv> kv)
    : prompt_view_(prompt_view),
      sequence_(std::move(sequence)),
      runner_(std::move(runner)),
      kv_(std::move(kv)),
      draft_view_(*this) {}

absl::StatusOr<std::unique_ptr<Session>> Session::Fork() const {
  ASSIGN_OR_RETURN(std::unique_ptr<Runner> runner, runner_->Fork());
  ASSIGN_OR_RETURN(std::unique_ptr<SequenceKv> kv, kv_->Fork());
  std::unique_ptr<Session> copy(
      new Session(prompt_view_, sequence_, std::move(runner), std::move(kv)));
  copy->context_is_what_fits_ = context_is_what_fits_;
  copy->crowded_ = crowded_;
  if (prompt_cache_ != nullptr) {
    copy->prompt_cache_ = prompt_cache_->Fork(copy->PromptCacheParts());
  }
  return copy;
}

SessionPromptCache::Parts Session::PromptCacheParts() {
  return {prompt_view_, cancellation_, sequence_, *runner_, *kv_};
}

// ---- Tokens ----

absl::Status Session::CheckFit(const int32_t* ids, size_t count) const {
  const ModelConfig& config = model().config;
  if (static_cast<uint64_t>(sequence_.room()) < count) {
    constexpr size_t kMost = size_t{1} << 62;  // beyond any sum
    const auto length = static_cast<int64_t>(sequence_.tokens().size() +
                                             std::min(count, kMost));
    const int64_t checkpoint = config.context;
    if (context_is_what_fits_ && length <= checkpoint) {
      RETURN_IF_ERROR(CheckRanksFit(kv_->sites(), length));
    }
    return InputError(
        "context_length_exceeded",
        absl::StrCat("the text has ", length, " tokens, the context holds ",
                     kv_->plan().context));
  }
  for (size_t i = 0; i < count; ++i) {
    if (ids[i] < 0 || ids[i] >= config.vocab) {
      return InputError(
          "invalid_token",
          absl::StrCat("token ", i, ": got id ", ids[i],
                       ", the vocabulary has 0 to ", config.vocab - 1));
    }
  }
  return absl::OkStatus();
}

absl::Status Session::Append(const int32_t* ids, size_t count) {
  RETURN_IF_ERROR(CheckFit(ids, count));
  sequence_.Append(ids, count);
  runner_->DropKeptRow();
  return absl::OkStatus();
}

void Session::Truncate(size_t length) {
  if (length >= sequence_.tokens().size()) return;
  sequence_.Truncate(length);
  runner_->DropKeptRow();
  MatchKv();
}

void Session::BeginPrompt() {
  if (prompt_cache_ != nullptr) prompt_cache_->BeginPrompt();
  DropProvisional();
  sequence_.BeginPrompt();
}

void Session::AbandonPrompt() {
  const size_t before = sequence_.tokens().size();
  sequence_.AbandonPrompt();
  if (sequence_.tokens().size() == before) return;
  runner_->DropKeptRow();
  MatchKv();
}

// ---- The KV ----

void Session::DropProvisional() {
  if (sequence_.IsSettled()) return;
  TruncateKv(sequence_.settled());
  runner_->DropKeptRow();
}

void Session::TruncateKv(int64_t length) {
  sequence_.TruncateKv(length);
  kv_->Truncate(length);
  if (prompt_cache_ != nullptr) prompt_cache_->Truncate(length);
}

void Session::MatchKv() {
  if (prompt_cache_ != nullptr) {
    prompt_cache_->Truncate(std::ssize(sequence_.tokens()));
  }
  if (kv_->store().length() > sequence_.kv_length()) {
    kv_->Truncate(sequence_.kv_length());
  }
}

void Session::ForgetDamaged() {
  if (sweeps_) return;
  const int64_t intact = kv_->IntactLength();
  if (intact == sequence_.kv_length()) return;
  if (prompt_cache_ != nullptr) prompt_cache_->RefuseDamaged();
  TruncateKv(intact);
  runner_->DropKeptRow();
}

// ---- Its use ----

Traffic Session::traffic() const {
  Traffic traffic;
  for (const auto& rank : kv_->ranks()) {
    Traffic own;
    RankTraffic part = {
        .gathered_bytes = runner_->together().gather->received(rank->site.rank),
        .moves = rank->moves()};
    if (rank->tier != nullptr) own.link = rank->tier->engine->ledger();
    const RunnerRank& computes =
        *runner_->ranks()[static_cast<size_t>(rank->site.rank)];
    for (size_t phase = 0; phase < own.link.size(); ++phase) {
      const LinkUse& weights = computes.streamed_use()[phase];
      own.link[phase].h2d_bytes += weights.h2d_bytes;
      own.link[phase].busy_seconds += weights.busy_seconds;
      part.moves.weight_bytes += static_cast<int64_t>(weights.h2d_bytes);
    }
    for (const LinkUse& use : own.link) {
      part.h2d_bytes += use.h2d_bytes;
      part.d2h_bytes += use.d2h_bytes;
    }
    if (rank->tier != nullptr && rank->tier->spill != nullptr) {
      own.disk.read_bytes = rank->tier->disk->read_bytes();
      own.disk.written_bytes = rank->tier->spill->written_bytes();
    }
    own.moves = part.moves;
    traffic += own;
    traffic.ranks.push_back(part);
  }
  if (prompt_cache_ != nullptr) {
    traffic += Traffic{.disk = prompt_cache_->disk()};
  }
  return traffic;
}

TimeSpent Session::Elapsed() const {
  double link_seconds = kv_->LinkSeconds();
  for (const LinkUse& weights : runner_->first().streamed_use()) {
    link_seconds += weights.busy_seconds;
  }
  return {.seconds = SecondsBetween({}, model().machine->clock().Now()),
          .link_seconds = link_seconds};
}

std::vector<std::string> Session::warnings() const {
  std::vector<std::string> all = model().warnings;
  // A session whose KV is whole is the model as it is.
  if (sequence_.extent().has_value() && !sequence_.extent()->Reads().IsFull()) {
    std::string partial = ExtentWarning(kv_->site(), kv_->plan().context);
    if (!partial.empty()) all.push_back(std::move(partial));
  }
  if (!crowded_.empty()) all.push_back(crowded_);
  const std::string& slower = runner_->together().warning;
  if (!slower.empty()) all.push_back(slower);
  for (const auto& rank : kv_->ranks()) {
    if (rank->placement == nullptr) continue;
    for (const std::string& warning : rank->placement->warnings()) {
      if (std::find(all.begin(), all.end(), warning) == all.end()) {
        all.push_back(warning);
      }
    }
  }
  if (prompt_cache_ != nullptr) {
    for (const std::string& warning : prompt_cache_->warnings()) {
      all.push_back(warning);
    }
  }
  return all;
}

int64_t KvEntries(const Session& session) {
  const Sequence& sequence = session.sequence();
  const int layers = session.model().config.layers;
  // With a view that drafts read, rows go through all layers.
  return session.kv().site().extent.has_value()
             ? sequence.extent()->Entries(
                   layers, sequence.first_position() + sequence.kv_length())
             : layers * sequence.kv_length();
}

}  // namespace tiercel
