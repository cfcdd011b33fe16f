#include "runtime/sequence/session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/error.h"
#include "offload/kv/in_place_kv.h"
#include "offload/kv/tiered_kv.h"

namespace tiercel {
absl::StatusOr<std::unique_ptr<Session>> Session::Create(
    const Model& model, const Options& options) {
  if (model.weights == nullptr) {
    return UsageError("no_weights",
                      "session: the model was opened without its weights");
  }
  if (absl::Status s = CheckSessionOptions(model.config, options); !s.ok()) {
    return s;
  }
  absl::StatusOr<std::unique_ptr<Stream>> stream = model.machine->NewStream();
  if (!stream.ok()) return stream.status();
  const SessionSite site =
      SiteOf(model,
             {.bytes = model.machine->memory().used(),
              .bytes_per_token = model.weights->bytes_per_token()},
             options, (*stream)->pool().num_threads());
  const absl::StatusOr<TierPlan> plan = site.Plan(options.context);
  if (!plan.ok()) return plan.status();
  std::unique_ptr<Session> session(
      new Session(model, site, *plan, options.prompt_view.Within(plan->context),
                  *std::move(stream)));
  absl::StatusOr<std::unique_ptr<KvStore>> kv =
      session->MakeKv(options.first_position);
  if (!kv.ok()) return kv.status();
  session->kv_ = *std::move(kv);
  if (options.retrieval.has_value()) {
    absl::StatusOr<std::unique_ptr<Retrieval>> retrieval =
        Retrieval::Create(model.machine->memory(),
                          site.RetrievalShape(plan->context), *session->kv_);
    if (!retrieval.ok()) return retrieval.status();
    session->retrieval_ = *std::move(retrieval);
  }
  if (options.depth.has_value()) {
    session->spans_.emplace(options.depth->Of(model.config),
                            model.AssistantHeader(), options.first_position);
  }
  const bool whole_prompts =
      options.prompt_view.IsFull() && !options.EndsPrompts();
  if (options.texts.has_value() && whole_prompts &&
      options.first_position == 0 && !plan->on_device) {
    session->KeepTexts(*options.texts);
  }
  session->context_is_what_fits_ =
      options.context == 0 && plan->context < model.config.context;
  return session;
}

Session::Session(const Model& model, const SessionSite& site,
                 const TierPlan& plan, const View& prompt_view,
                 std::unique_ptr<Stream> stream)
    : model_(model),
      site_(site),
      plan_(plan),
      prompt_view_(prompt_view),
      stream_(std::move(stream)),
      decoder_(model.config, *model.weights, model.options.compute,
               model.machine->memory()) {}

absl::StatusOr<std::unique_ptr<KvStore>> Session::MakeKv(
    int64_t first_position) {
  if (plan_.in_place && !plan_.on_device) {
    return std::make_unique<InPlaceKv>(
        std::make_shared<PagePool>(plan_.shape.layout, plan_.shape.layers,
                                   plan_.context / kPageTokens + 2),
        first_position);
  }
  // Takes all the session will ever need, so that nothing can run out later.
  const ModelConfig& config = model_.config;
  const int64_t rows =
      PromptRowsAtOnce(config, model_.weights->bytes_per_token(),
                       stream_->pool().num_threads(), /*before=*/0);
  if (absl::Status s = decoder_.Reserve(rows, plan_.context); !s.ok()) return s;
  if (absl::Status s = ReserveHidden(plan_.context); !s.ok()) return s;
  if (absl::Status s = ReserveLogits(); !s.ok()) return s;
  if (absl::Status s = ReserveShares(first_position); !s.ok()) return s;
  const absl::StatusOr<std::byte*> scratch =
      stream_->Scratch(static_cast<size_t>(ScratchBytes(
          config, plan_.context, stream_->pool().num_threads(), site_.on_gpu)));
  if (!scratch.ok()) return scratch.status();
  Machine& machine = *model_.machine;
  if (plan_.on_device) {
    absl::StatusOr<PagePool> pool =
        PagePool::OnDevice(plan_.shape.layout, plan_.shape.layers,
                           plan_.shape.context_pages, machine.memory());
    if (!pool.ok()) return pool.status();
    return std::make_unique<InPlaceKv>(
        std::make_shared<PagePool>(*std::move(pool)), first_position);
  }
  placement_ = machine.NewPlacement();
  absl::StatusOr<std::unique_ptr<Link>> link = machine.NewLink(placement_);
  if (!link.ok()) return link.status();
  absl::StatusOr<std::shared_ptr<KvTier>> tier =
      KvTier::Create(plan_.shape, machine.memory(), *std::move(link));
  if (!tier.ok()) return tier.status();
  tier_ = *std::move(tier);
  return std::make_unique<TieredKv>(tier_, first_position);
}

Traffic Session::traffic() const {
  Traffic traffic;
  if (tier_ != nullptr) traffic.link = tier_->engine->ledger();
  traffic.moves = kv_->moves();
  traffic.disk = disk_;
  return traffic;
}

TimeSpent Session::Elapsed() const {
  TimeSpent elapsed;
  elapsed.seconds = SecondsBetween({}, model_.machine->clock().Now());
  for (const LinkUse& use : traffic().link) {
    elapsed.link_seconds += use.busy_seconds;
  }
  return elapsed;
}

MemoryUse Session::memory() const {
  return {.host = kv_->HostBytes(), .device = model_.machine->memory().used()};
}

std::vector<std::string> Session::warnings() const {
  std::vector<std::string> all = model_.warnings;
  if (site_.depth.has_value() && site_.depth->cut < model_.config.layers) {
    std::string untrained = UntrainedFor(*model_.checkpoint, *site_.depth);
    if (!untrained.empty()) all.push_back(std::move(untrained));
  }
  if (placement_ != nullptr) {
    const std::vector<std::string> more = placement_->warnings();
    all.insert(all.end(), more.begin(), more.end());
  }
  if (texts_ != nullptr) {
    texts_->Settle();
    texts_->Settle();  // what has gone wrong since
    const std::vector<std::string>& more = texts_->warnings();
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

absl::Status Session::Append(const int32_t* ids, size_t count) {
  if (static_cast<uint64_t>(room()) < count) {
    constexpr size_t kMost = size_t{1} << 62;  // beyond any sum
    const auto length =
        static_cast<int64_t>(tokens_.size() + std::min(count, kMost));
    const int64_t checkpoint = model_.config.context;
    if (context_is_what_fits_ && length <= checkpoint) {
      return site_.DoesNotFit(length);
    }
    return InputError(
        "context_length_exceeded",
        absl::StrCat("the text has ", length, " tokens, the context holds ",
                     plan_.context));
  }
  for (size_t i = 0; i < count; ++i) {
    if (ids[i] < 0 || ids[i] >= model_.config.vocab) {
      return UsageError(
          "invalid_token",
          absl::StrCat("token ", i, ": got id ", ids[i],
                       ", the vocabulary has 0 to ", model_.config.vocab - 1));
    }
  }
  tokens_.insert(tokens_.end(), ids, ids + count);
  knows_next_ = false;
  return absl::OkStatus();
}

absl::Status Session::ReserveLogits() {
  if (!logits_.empty()) return absl::OkStatus();
  absl::StatusOr<DeviceArray<float>> logits = DeviceArray<float>::Create(
      model_.machine->memory(), LogitRows() * model_.config.vocab, "logits");
  if (!logits.ok()) return logits.status();
  logits_ = *std::move(logits);
  if (!stream_->on_host()) host_logits_.resize(logits_.size());
  return absl::OkStatus();
}

// Puts the logits of `count` rows of the last step into logits_, from its row
// `row` on.
absl::Status Session::LogitsInto(int64_t first, int64_t count, size_t row) {
  if (absl::Status s = ReserveLogits(); !s.ok()) return s;
  float* const logits = logits_.data() + row * Vocab();
  if (absl::Status s = decoder_.Logits(
          *stream_, hidden_.data() + first * model_.config.hidden, count,
          logits);
      !s.ok() || stream_->on_host()) {
    return s;
  }
  // What a step gives the host: read once, and waited for once.
  if (absl::Status s =
          stream_->Copy(host_logits_.data() + row * Vocab(), logits,
                        static_cast<size_t>(count) * Vocab() * sizeof(float));
      !s.ok()) {
    return s;
  }
  return stream_->Synchronize();
}

absl::StatusOr<const float*> Session::RowLogits(int64_t first, int64_t count) {
  if (absl::Status s = LogitsInto(first, count, /*row=*/1); !s.ok()) return s;
  return HostLogits() + Vocab();
}

absl::Status Session::CatchUp(Station station) {
  return CatchUp(station, kNoProgress);
}

absl::Status Session::CatchUp(Station station, Progress progress) {
  if (tokens_.empty()) {
    return UsageError("empty_prompt",
                      "the session holds no token to continue from");
  }
  if (pending() == 0) {
    if (knows_next_) return absl::OkStatus();
    // Known KV, unknown logits: the last row is computed once more. It is the
    // same row, whatever runs with it.
    TruncateKv(kv_->length() - 1);
  }
  absl::StatusOr<std::optional<DeepSpans>> spans = NextSpans();
  if (!spans.ok()) return spans.status();
  View view = prompt_view_;
  if (spans->has_value()) {
    const DeepSpans& next = **spans;
    const int64_t answer = next.answer_begin() - kv_->begin();
    // What is there of a new answer's tail ends below the cut.
    if (prompt_begins_ && kv_->length() > answer) TruncateKv(answer);
    if (retrieval_ == nullptr) {
      view = next.Reads();
    } else {
      retrieval_->ShowAbove({.layers = next.depth().cut,
                             .anchor = next.depth().anchor,
                             .answer_begin = next.answer_begin()});
    }
  }
  const int64_t rows = pending();
  if (absl::Status s = Forward(rows, station, progress, view); !s.ok()) {
    return s;
  }
  spans_ = *std::move(spans);
  prompt_begins_ = false;
  if (absl::Status s = LogitsInto(rows - 1, 1, /*row=*/0); !s.ok()) return s;
  knows_next_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::optional<DeepSpans>> Session::NextSpans() const {
  std::optional<DeepSpans> next = spans_;
  if (!next.has_value() || !prompt_begins_) return next;
  if (absl::Status s = next->BeginAnswer(tokens_, kv_->end()); !s.ok()) {
    return s;
  }
  return next;
}

absl::Status Session::Step(Station station, const View& view) {
  if (absl::Status s = Forward(/*rows=*/1, station, kNoProgress, view);
      !s.ok()) {
    return s;
  }
  if (absl::Status s = LogitsInto(0, 1, /*row=*/0); !s.ok()) return s;
  knows_next_ = true;
  return absl::OkStatus();
}

absl::Status Session::CatchUpForDrafts(Station station) {
  absl::Status status = CatchUp(station);
  if (status.ok() && !retrieval_->fresh()) {
    // There was nothing to catch up with, or less than chooses, or it went on
    // with a prompt that had been stopped, half of it unseen.
    TruncateKv(std::max<int64_t>(0, kv_->length() - retrieval_->evidence()));
    knows_next_ = false;
    status = CatchUp(station);
  }
  return status;
}

void Session::TruncateKv(int64_t length) {
  interrupted_.reset();
  kv_->Truncate(length);
  settled_ = std::min(settled_, length);
  saved_ = std::min(saved_, length);
  if (length <= filled_from_) filled_from_ = kAllPositions;
}

void Session::DropProvisional() {
  if (settled_ == kv_->length()) return;
  TruncateKv(settled_);
  knows_next_ = false;
}

void Session::BeginPrompt() {
  DropProvisional();
  prompt_had_begun_ = std::exchange(prompt_begins_, true);
  tokens_before_ = tokens_.size();
}

void Session::AbandonPrompt() {
  Truncate(tokens_before_);
  prompt_begins_ = prompt_had_begun_;
}

int64_t Session::KvEntries() const {
  const int layers = model_.config.layers;
  return site_.depth.has_value() ? spans_->Entries(layers, kv_->end())
                                 : layers * kv_->length();
}

void Session::Truncate(size_t length) {
  if (length >= tokens_.size()) return;
  tokens_.resize(length);
  if (kv_->length() > static_cast<int64_t>(length)) {
    TruncateKv(static_cast<int64_t>(length));
  }
  knows_next_ = false;
  if (!spans_.has_value()) return;
  const int64_t end = kv_->begin() + static_cast<int64_t>(length);
  spans_->Truncate(end);
  if (!spans_->HasAnswer(end)) prompt_begins_ = true;
}

absl::StatusOr<std::unique_ptr<Session>> Session::Fork() const {
  absl::StatusOr<std::unique_ptr<Stream>> stream = model_.machine->NewStream();
  if (!stream.ok()) return stream.status();
  absl::StatusOr<std::unique_ptr<KvStore>> kv = kv_->Fork();
  if (!kv.ok()) return kv.status();
  std::unique_ptr<Session> copy(
      new Session(model_, site_, plan_, prompt_view_, *std::move(stream)));
  copy->kv_ = *std::move(kv);
  if (retrieval_ != nullptr) {
    absl::StatusOr<std::unique_ptr<Retrieval>> retrieval =
        retrieval_->Fork(*copy->kv_);
    if (!retrieval.ok()) return retrieval.status();
    copy->retrieval_ = *std::move(retrieval);
  }
  copy->placement_ = placement_;
  copy->tier_ = tier_;
  copy->context_is_what_fits_ = context_is_what_fits_;
  copy->tokens_ = tokens_;
  copy->settled_ = settled_;
  copy->filled_from_ = filled_from_;
  if (texts_folder_.has_value()) copy->KeepTexts(*texts_folder_);
  copy->saved_ = saved_;
  copy->spans_ = spans_;
  copy->prompt_begins_ = prompt_begins_;
  // Without room for them they are computed again.
  if (knows_next_ && copy->ReserveLogits().ok()) {
    std::copy_n(HostLogits(), Vocab(), copy->HostLogits());
    copy->knows_next_ = true;
  }
  return copy;
}

}  // namespace tiercel
