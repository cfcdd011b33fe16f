#include "runtime/session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/error.h"

namespace tiercel {
namespace {

constexpr auto kNoProgress = [](uint64_t, uint64_t) { return true; };

// Positions are absolute and enter angles and page numbers: far beyond any
// context, far below where either would overflow.
constexpr int64_t kMostPosition = int64_t{1} << 40;

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
  absl::StatusOr<std::unique_ptr<Stream>> stream =
      Stream::Create(model.options.stream);
  if (!stream.ok()) return stream.status();
  const int64_t context =
      options.context > 0 ? options.context : config.context;
  const KvLayout layout = {.type_k = options.type_k,
                           .type_v = options.type_v,
                           .kv_heads = config.kv_heads,
                           .head_dim = config.head_dim};
  auto pool = std::make_shared<PagePool>(layout, config.layers,
                                         context / kPageTokens + 2);
  return std::unique_ptr<Session>(
      new Session(model, context, *std::move(stream),
                  KvStore(std::move(pool), options.first_position)));
}

Session::Session(const Model& model, int64_t context,
                 std::unique_ptr<Stream> stream, KvStore kv)
    : model_(model),
      context_(context),
      stream_(std::move(stream)),
      decoder_(model.config, *model.weights, model.options.compute),
      kv_(std::move(kv)) {}

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

absl::Status Session::Forward(int64_t rows) {
  return Forward(rows, kNoProgress);
}

absl::Status Session::RowLogits(int64_t first, int64_t count, float* logits) {
  return decoder_.Logits(
      *stream_, hidden_.data() + first * model_.config.hidden, count, logits);
}

absl::Status Session::CatchUp() { return CatchUp(kNoProgress); }

absl::Status Session::CatchUp(Progress progress) {
  if (tokens_.empty()) {
    return UsageError("empty_prompt",
                      "the session holds no token to continue from");
  }
  if (pending() == 0) {
    if (!next_logits_.empty()) return absl::OkStatus();
    // Known KV, unknown logits: the last row is computed once more. It is the
    // same row, whatever runs with it.
    kv_.Truncate(kv_.length() - 1);
  }
  const int64_t rows = pending();
  if (absl::Status s = Forward(rows, progress); !s.ok()) return s;
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
  if (kv_.length() > static_cast<int64_t>(length)) {
    kv_.Truncate(static_cast<int64_t>(length));
  }
  next_logits_.clear();
}

absl::StatusOr<std::unique_ptr<Session>> Session::Fork() const {
  absl::StatusOr<std::unique_ptr<Stream>> stream =
      Stream::Create(model_.options.stream);
  if (!stream.ok()) return stream.status();
  std::unique_ptr<Session> copy(
      new Session(model_, context_, *std::move(stream), kv_.Fork()));
  copy->tokens_ = tokens_;
  copy->next_logits_ = next_logits_;
  return copy;
}

}  // namespace tiercel
