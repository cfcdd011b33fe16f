#include "runtime/session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/error.h"
#include "offload/move/tiered_kv.h"
#include "offload/page/host_kv.h"
#include "runtime/session_plan.h"

namespace tiercel {
namespace {

constexpr auto kNoProgress = [](uint64_t, uint64_t) { return true; };

// Positions are absolute and enter angles and page numbers: far beyond any
// context, far below where either would overflow.
constexpr int64_t kMostPosition = int64_t{1} << 40;

absl::StatusOr<std::unique_ptr<Stream>> StreamOn(const Model& model) {
  Stream::Options options = model.options.stream;
  options.memory = &model.memory();
  return Stream::Create(options);
}

absl::Status CheckKvType(const char* which, DType type, int head_dim) {
  if (InfoOf(type).block_elements == 1) return absl::OkStatus();
  const std::string name(InfoOf(type).name);
  if (type != DType::kQ8_0) {
    return UsageError("invalid_kv_type",
                      absl::StrCat("KV type of ", which, ": got ", name,
                                   ", need f32, f16, bf16 or q8_0"));
  }
  if (head_dim % InfoOf(type).block_elements != 0) {
    return UsageError(
        "invalid_kv_type",
        absl::StrCat("KV type of ", which, ": ", name, " needs a head_dim ",
                     "that is a multiple of 32, the model has ", head_dim));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Create(
    const Model& model, const Options& options) {
  const ModelConfig& config = model.config;
  if (model.weights == nullptr) {
    return UsageError("no_weights",
                      "session: the model was opened without its weights");
  }
  if (options.context < 0 || options.context > config.context) {
    return UsageError(
        "invalid_context",
        absl::StrCat("context: got ", options.context, ", the checkpoint is ",
                     "made for ", config.context,
                     " (rope scaling extends it)"));
  }
  if (options.first_position < 0 || options.first_position > kMostPosition) {
    return UsageError(
        "invalid_argument",
        absl::StrCat("first_position: got ", options.first_position,
                     ", need 0 to ", kMostPosition));
  }
  for (const auto& [which, type] :
       {std::pair("K", options.type_k), std::pair("V", options.type_v)}) {
    if (absl::Status s = CheckKvType(which, type, config.head_dim); !s.ok()) {
      return s;
    }
  }
  absl::StatusOr<std::unique_ptr<Stream>> stream = StreamOn(model);
  if (!stream.ok()) return stream.status();
  const int64_t context =
      options.context > 0 ? options.context : config.context;
  const KvLayout layout = {.type_k = options.type_k,
                           .type_v = options.type_v,
                           .kv_heads = config.kv_heads,
                           .head_dim = config.head_dim};
  std::unique_ptr<Session> session(
      new Session(model, context, *std::move(stream)));
  if (model.arena == nullptr) {
    session->kv_ = std::make_unique<HostKv>(
        std::make_shared<PagePool>(layout, config.layers,
                                   context / kPageTokens + 2),
        options.first_position);
    return session;
  }
  absl::StatusOr<std::unique_ptr<KvStore>> kv =
      session->MakeTieredKv(layout, options.first_position);
  if (!kv.ok()) return kv.status();
  session->kv_ = *std::move(kv);
  return session;
}

Session::Session(const Model& model, int64_t context,
                 std::unique_ptr<Stream> stream)
    : model_(model),
      context_(context),
      stream_(std::move(stream)),
      decoder_(model.config, *model.weights, model.options.compute,
               model.memory()) {}

// Takes all the session will ever need, so that nothing can run out later.
absl::StatusOr<std::unique_ptr<KvStore>> Session::MakeTieredKv(
    const KvLayout& layout, int64_t first_position) {
  const ModelConfig& config = model_.config;
  const int threads = stream_->pool().num_threads();
  const WeightSizes weights = {
      .bytes = model_.arena->used(),
      .bytes_per_token = model_.weights->bytes_per_token()};
  const TierNeeds needs =
      SessionNeeds(config, weights, layout, context_, first_position, threads);
  const int64_t budget = model_.arena->budget();
  plan_ = PlanTiers(needs, budget);
  if (!plan_->fits()) {
    return MemoryError(
        "does_not_fit",
        absl::StrCat("context ", context_, " needs ", LeastBudget(needs),
                     " bytes of device memory at least, the budget is ", budget,
                     "; it can serve a context of ",
                     LargestContext(config, weights, layout, threads, budget)));
  }
  const int64_t rows = PromptRowsAtOnce(weights.bytes_per_token, config.layers);
  if (absl::Status s = decoder_.Reserve(rows, context_); !s.ok()) return s;
  if (absl::Status s = ReserveHidden(context_); !s.ok()) return s;
  const absl::StatusOr<std::byte*> scratch =
      stream_->Scratch(static_cast<size_t>(ScratchBytes(config, threads)));
  if (!scratch.ok()) return scratch.status();
  const Model::Simulation& simulation = *model_.options.simulation;
  absl::StatusOr<std::shared_ptr<KvTier>> tier =
      KvTier::Create(plan_->shape, model_.memory(),
                     std::make_unique<SimulatedLink>(
                         simulation.link_bytes_per_s, simulation.latency_s,
                         std::make_shared<Placement>()));
  if (!tier.ok()) return tier.status();
  tier_ = *std::move(tier);
  return std::make_unique<TieredKv>(tier_, first_position);
}

Traffic Session::traffic() const {
  if (tier_ == nullptr) return {};
  return {tier_->engine->ledger(), kv_->moves()};
}

absl::Status Session::Append(const int32_t* ids, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (ids[i] < 0 || ids[i] >= model_.config.vocab) {
      return UsageError(
          "invalid_token",
          absl::StrCat("token ", i, ": got id ", ids[i],
                       ", the vocabulary has 0 to ", model_.config.vocab - 1));
    }
  }
  if (static_cast<uint64_t>(room()) < count) {
    return InputError("context_length_exceeded",
                      absl::StrCat("the text has ", tokens_.size() + count,
                                   " tokens, the context holds ", context_));
  }
  tokens_.insert(tokens_.end(), ids, ids + count);
  next_logits_.clear();
  return absl::OkStatus();
}

absl::Status Session::RowLogits(int64_t first, int64_t count, float* logits) {
  return decoder_.Logits(
      *stream_, hidden_.data() + first * model_.config.hidden, count, logits);
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
    if (!next_logits_.empty()) return absl::OkStatus();
    // Known KV, unknown logits: the last row is computed once more. It is the
    // same row, whatever runs with it.
    kv_->Truncate(kv_->length() - 1);
  }
  const int64_t rows = pending();
  if (absl::Status s = Forward(rows, station, progress); !s.ok()) return s;
  std::vector<float> logits(static_cast<size_t>(model_.config.vocab));
  if (absl::Status s = RowLogits(rows - 1, 1, logits.data()); !s.ok()) {
    return s;
  }
  next_logits_ = std::move(logits);
  return absl::OkStatus();
}

void Session::Truncate(size_t length) {
  if (length >= tokens_.size()) return;
  tokens_.resize(length);
  if (kv_->length() > static_cast<int64_t>(length)) {
    kv_->Truncate(static_cast<int64_t>(length));
  }
  next_logits_.clear();
}

absl::StatusOr<std::unique_ptr<Session>> Session::Fork() const {
  absl::StatusOr<std::unique_ptr<Stream>> stream = StreamOn(model_);
  if (!stream.ok()) return stream.status();
  absl::StatusOr<std::unique_ptr<KvStore>> kv = kv_->Fork();
  if (!kv.ok()) return kv.status();
  std::unique_ptr<Session> copy(
      new Session(model_, context_, *std::move(stream)));
  copy->kv_ = *std::move(kv);
  copy->plan_ = plan_;
  copy->tier_ = tier_;
  copy->tokens_ = tokens_;
  copy->next_logits_ = next_logits_;
  return copy;
}

}  // namespace tiercel
