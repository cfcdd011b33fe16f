#include "apps/commands/api.h"

#include <algorithm>

#include "apps/cli/error.h"
#include "apps/terminal/signals.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

// Makes an absl::Status of the C API's error. A call is cancelled only by a
// signal; the caller keeps the error of a callback. For the command line a view
// that exceeds the context is one that does not fit.
absl::Status FromApi(tiercel_status status, const tiercel_error& error) {
  switch (status) {
    case TIERCEL_OK:
      return absl::OkStatus();
    case TIERCEL_CANCELLED:
      return Interrupted();
    case TIERCEL_USAGE:
      return Error(std::string_view(error.code) == "view_too_large"
                       ? Exit::kMemory
                       : Exit::kUsage,
                   error.code, error.message);
    case TIERCEL_INVALID_INPUT:
      return Error(Exit::kInput, error.code, error.message);
    case TIERCEL_OUT_OF_MEMORY:
      return Error(Exit::kMemory, error.code, error.message);
    case TIERCEL_NO_DEVICE:
      return Error(Exit::kDevice, error.code, error.message);
    case TIERCEL_IO:
      return Error(Exit::kIo, error.code, error.message);
    case TIERCEL_FAILED:
    case TIERCEL_BUFFER_TOO_SMALL:
      break;
  }
  return Error(Exit::kFailed, error.code, error.message);
}

// Runs `fill(buffer, &size, &error)` with room for `guess` items, and if that
// is too little once more with the room that it asks for.
template <typename Buffer, typename Fill>
absl::StatusOr<Buffer> FillBuffer(size_t guess, Fill fill) {
  Buffer buffer;
  tiercel_error error = Defaults<tiercel_error>();
  size_t size = guess;
  tiercel_status status = TIERCEL_BUFFER_TOO_SMALL;
  for (int attempt = 0; status == TIERCEL_BUFFER_TOO_SMALL && attempt < 2;
       ++attempt) {
    buffer.resize(size);
    status = fill(buffer.data(), &size, &error);
  }
  if (status != TIERCEL_OK) return FromApi(status, error);
  buffer.resize(size);
  return buffer;
}

template <typename Fill>
absl::StatusOr<Json> FillJson(Fill fill) {
  ASSIGN_OR_RETURN(std::string text, FillBuffer<std::string>(1 << 16, fill));
  // Its size counts the NUL.
  Json json = Json::parse(text.c_str(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return Error(Exit::kFailed, "internal", "the library returned bad JSON");
  }
  return json;
}

int OnProgress(void* user_data, uint64_t done, uint64_t total) {
  const auto& progress = *static_cast<const ProgressFn*>(user_data);
  if (progress) progress(done, total);
  return SignalReceived() != 0;
}

void* UserData(const ProgressFn& progress) {
  return const_cast<ProgressFn*>(&progress);  // OnProgress only reads it
}

tiercel_text_limits ToApi(const Model::TextLimits& limits) {
  auto api_limits = Defaults<tiercel_text_limits>();
  api_limits.most_tokens = limits.most_tokens;
  api_limits.progress = OnProgress;
  api_limits.user_data = UserData(limits.progress);
  return api_limits;
}

// The most tokens that `bytes` of text can have, or that are wanted.
size_t MostTokens(size_t bytes, const Model::TextLimits& limits) {
  return limits.most_tokens > 0 ? std::min(bytes, limits.most_tokens) : bytes;
}

// A callback, and the error with which it ended.
template <typename Callback>
struct Guarded {
  const Callback& callback;
  absl::Status status;
};

int OnToken(void* user_data, const tiercel_token* token) {
  auto& guarded = *static_cast<Guarded<TokenFn>*>(user_data);
  guarded.status = guarded.callback(token->id, {token->text, token->text_bytes},
                                    {token->thought, token->thought_bytes});
  return !guarded.status.ok() || SignalReceived() != 0;
}

int OnRow(void* user_data, size_t index, const float* logits) {
  auto& guarded = *static_cast<Guarded<RowFn>*>(user_data);
  guarded.status = guarded.callback(index, logits);
  return !guarded.status.ok() || SignalReceived() != 0;
}

}  // namespace

absl::StatusOr<Model> Model::Open(tiercel_model_params params,
                                  const ProgressFn& progress) {
  params.progress = OnProgress;
  params.user_data = UserData(progress);
  tiercel_model* opened = nullptr;
  tiercel_error error = Defaults<tiercel_error>();
  tiercel_status status = tiercel_model_open(&params, &opened, &error);
  if (status != TIERCEL_OK) return FromApi(status, error);
  Model model(opened);
  status = tiercel_model_get_info(opened, &model.info_, &error);
  if (status != TIERCEL_OK) return FromApi(status, error);
  return model;
}

absl::Status Model::Load(const ProgressFn& progress) {
  tiercel_error error = Defaults<tiercel_error>();
  tiercel_status status =
      tiercel_model_load(get(), OnProgress, UserData(progress), &error);
  if (status != TIERCEL_OK) return FromApi(status, error);
  status = tiercel_model_get_info(get(), &info_, &error);
  return FromApi(status, error);
}

absl::StatusOr<Json> Model::Describe() const {
  return FillJson([&](char* text, size_t* size, tiercel_error* error) {
    return tiercel_model_describe(get(), text, size, error);
  });
}

absl::StatusOr<tiercel_measurement> Model::Measure(
    const tiercel_session_params& params, double again_s,
    const ProgressFn& progress) const {
  auto measurement = Defaults<tiercel_measurement>();
  measurement.again_seconds = again_s;
  tiercel_error error = Defaults<tiercel_error>();
  const tiercel_status status = tiercel_measure(
      get(), &params, OnProgress, UserData(progress), &measurement, &error);
  if (status != TIERCEL_OK) return FromApi(status, error);
  return measurement;
}

absl::StatusOr<Json> Model::Plan(const tiercel_session_params& params) const {
  return FillJson([&](char* text, size_t* size, tiercel_error* error) {
    return tiercel_plan(get(), &params, text, size, error);
  });
}

absl::StatusOr<int64_t> Model::ChooseRanks(
    const tiercel_session_params& params) const {
  int64_t ranks = 0;
  tiercel_error error = Defaults<tiercel_error>();
  const tiercel_status status =
      tiercel_choose_ranks(get(), &params, &ranks, &error);
  if (status != TIERCEL_OK) return FromApi(status, error);
  return ranks;
}

absl::Status Model::CheckDraft(const Model& draft) const {
  tiercel_error error = Defaults<tiercel_error>();
  return FromApi(tiercel_check_draft(get(), draft.get(), &error), error);
}

absl::StatusOr<std::vector<int32_t>> Model::Tokenize(
    std::string_view text, uint32_t flags, const TextLimits& limits) const {
  const tiercel_text_limits api_limits = ToApi(limits);
  return FillBuffer<std::vector<int32_t>>(
      MostTokens(text.size() + 1, limits),
      [&](int32_t* ids, size_t* size, tiercel_error* error) {
        return tiercel_tokenize(get(), text.data(), text.size(), flags,
                                &api_limits, ids, size, error);
      });
}

absl::StatusOr<std::string> Model::Detokenize(const std::vector<int32_t>& ids,
                                              uint32_t flags) const {
  return FillBuffer<std::string>(
      ids.size() * 8, [&](char* text, size_t* size, tiercel_error* error) {
        return tiercel_detokenize(get(), ids.data(), ids.size(), flags, text,
                                  size, error);
      });
}

absl::StatusOr<std::vector<int32_t>> Model::ChatTokens(
    const std::vector<Message>& messages, const TextLimits& limits,
    const std::string& template_kwargs) const {
  const tiercel_text_limits api_limits = ToApi(limits);
  auto settings = Defaults<tiercel_chat_settings>();
  settings.think = think_;
  if (!template_kwargs.empty()) {
    settings.template_kwargs = template_kwargs.c_str();
  }
  std::vector<tiercel_message> views;
  size_t guess = 1024;  // for the template's own text
  for (const Message& message : messages) {
    views.push_back({sizeof(tiercel_message), message.role.c_str(),
                     message.content.data(), message.content.size(),
                     message.reasoning.data(), message.reasoning.size()});
    guess += message.content.size() + message.reasoning.size();
  }
  return FillBuffer<std::vector<int32_t>>(
      MostTokens(guess, limits),
      [&](int32_t* ids, size_t* size, tiercel_error* error) {
        return tiercel_chat_tokens_with(get(), views.data(), views.size(),
                                        &settings, &api_limits, ids, size,
                                        error);
      });
}

absl::StatusOr<Session> Session::Create(const Model& model,
                                        const tiercel_session_params& params) {
  tiercel_session* session = nullptr;
  tiercel_error error = Defaults<tiercel_error>();
  const tiercel_status status =
      tiercel_session_create(model.get(), &params, &session, &error);
  if (status != TIERCEL_OK) return FromApi(status, error);
  return Session(session);
}

absl::Status Session::Read(const std::vector<int32_t>& ids,
                           const ProgressFn& progress) {
  const CancelOnSignal cancel(session_.get());
  tiercel_error error = Defaults<tiercel_error>();
  return FromApi(tiercel_session_read(session_.get(), ids.data(), ids.size(),
                                      OnProgress, UserData(progress), &error),
                 error);
}

size_t Session::Length() const {
  return tiercel_session_length(session_.get());
}

absl::StatusOr<std::vector<int32_t>> Session::Ids() const {
  return FillBuffer<std::vector<int32_t>>(
      Length(), [&](int32_t* ids, size_t* size, tiercel_error* error) {
        return tiercel_session_ids(session_.get(), ids, size, error);
      });
}

int32_t Session::ResumedLayers() const {
  return tiercel_session_resumed(session_.get());
}

int32_t Session::KeptLayers() const {
  return tiercel_session_kept(session_.get());
}

absl::Status Session::Prefill(const std::vector<int32_t>& ids,
                              const ProgressFn& progress) {
  const CancelOnSignal cancel(session_.get());
  tiercel_error error = Defaults<tiercel_error>();
  return FromApi(
      tiercel_session_prefill(session_.get(), ids.data(), ids.size(),
                              OnProgress, UserData(progress), &error),
      error);
}

absl::Status Session::Fill(const std::vector<int32_t>& ids, uint64_t seed,
                           const ProgressFn& progress) {
  const CancelOnSignal cancel(session_.get());
  tiercel_error error = Defaults<tiercel_error>();
  return FromApi(
      tiercel_session_fill(session_.get(), ids.data(), ids.size(), seed,
                           OnProgress, UserData(progress), &error),
      error);
}

absl::Status Session::Generate(const tiercel_sampling& sampling,
                               const TokenFn& on_token) {
  const CancelOnSignal cancel(session_.get());
  Guarded<TokenFn> guarded = {on_token, absl::OkStatus()};
  tiercel_error error = Defaults<tiercel_error>();
  const tiercel_status status = tiercel_session_generate(
      session_.get(), &sampling, OnToken, &guarded, &error);
  return guarded.status.ok() ? FromApi(status, error) : guarded.status;
}

absl::StatusOr<Session> Session::Fork() const {
  tiercel_session* copy = nullptr;
  tiercel_error error = Defaults<tiercel_error>();
  const tiercel_status status =
      tiercel_session_fork(session_.get(), &copy, &error);
  if (status != TIERCEL_OK) return FromApi(status, error);
  return Session(copy);
}

absl::Status Session::GenerateAtOnce(std::vector<Generation>& generations) {
  std::vector<tiercel_session*> sessions;
  for (const Generation& generation : generations) {
    sessions.push_back(generation.session->session_.get());
  }
  const CancelOnSignal cancel(std::move(sessions));
  std::vector<Guarded<TokenFn>> guarded;
  std::vector<tiercel_error> errors(generations.size(),
                                    Defaults<tiercel_error>());
  std::vector<tiercel_batch_entry> entries;
  std::vector<const tiercel_batch_entry*> list;
  guarded.reserve(generations.size());
  entries.reserve(generations.size());
  for (Generation& generation : generations) {
    guarded.push_back({generation.on_token, absl::OkStatus()});
    tiercel_batch_entry entry = Defaults<tiercel_batch_entry>();
    entry.session = generation.session->session_.get();
    entry.sampling = &generation.sampling;
    if (generation.prompt != nullptr) {
      entry.ids = generation.prompt->data();
      entry.count = generation.prompt->size();
    }
    entry.on_token = OnToken;
    entry.user_data = &guarded.back();
    entry.status = &generation.result;
    entry.error = &errors[entries.size()];
    entries.push_back(entry);
    list.push_back(&entries.back());
  }
  tiercel_error error = Defaults<tiercel_error>();
  const tiercel_status status =
      tiercel_generate_batch(list.data(), list.size(), &error);
  for (size_t i = 0; i < generations.size(); ++i) {
    Generation& generation = generations[i];
    if (!generation.ended()) return FromApi(status, error);
    generation.status = guarded[i].status.ok()
                            ? FromApi(generation.result, errors[i])
                            : guarded[i].status;
  }
  return absl::OkStatus();
}

absl::Status Session::Score(const std::vector<int32_t>& ids,
                            size_t rows_per_step, const RowFn& on_row) {
  const CancelOnSignal cancel(session_.get());
  Guarded<RowFn> guarded = {on_row, absl::OkStatus()};
  tiercel_error error = Defaults<tiercel_error>();
  const tiercel_status status =
      tiercel_session_score(session_.get(), ids.data(), ids.size(),
                            rows_per_step, OnRow, &guarded, &error);
  return guarded.status.ok() ? FromApi(status, error) : guarded.status;
}

absl::Status Session::Truncate(size_t length) {
  tiercel_error error = Defaults<tiercel_error>();
  return FromApi(tiercel_session_truncate(session_.get(), length, &error),
                 error);
}

absl::StatusOr<std::vector<float>> Session::Attended(
    size_t begin, size_t end, size_t asked, size_t answer,
    const ProgressFn& progress) {
  const CancelOnSignal cancel(session_.get());
  return FillBuffer<std::vector<float>>(
      (end - begin) / TIERCEL_RUN_TOKENS + 1,
      [&](float* shares, size_t* size, tiercel_error* error) {
        return tiercel_session_attended(session_.get(), begin, end, asked,
                                        answer, OnProgress, UserData(progress),
                                        shares, size, error);
      });
}

absl::StatusOr<Json> Session::Report() const {
  return FillJson([&](char* text, size_t* size, tiercel_error* error) {
    return tiercel_session_report(session_.get(), text, size, error);
  });
}

absl::StatusOr<std::vector<double>> Session::TokenSeconds() const {
  return FillBuffer<std::vector<double>>(256, [&](double* seconds, size_t* size,
                                                  tiercel_error* error) {
    return tiercel_session_token_seconds(session_.get(), seconds, size, error);
  });
}

absl::StatusOr<Queue> Queue::Create(const Model& model, size_t at_once) {
  auto params = Defaults<tiercel_queue_params>();
  params.at_once = static_cast<int64_t>(at_once);
  tiercel_queue* queue = nullptr;
  tiercel_error error = Defaults<tiercel_error>();
  const tiercel_status status =
      tiercel_queue_create(model.get(), &params, &queue, &error);
  if (status != TIERCEL_OK) return FromApi(status, error);
  return Queue(queue);
}

absl::Status Queue::Add(const Session& session,
                        const std::vector<int32_t>* prompt,
                        const tiercel_sampling& sampling, Results* results) {
  tiercel_batch_entry entry = Defaults<tiercel_batch_entry>();
  entry.session = session.session_.get();
  if (prompt != nullptr) {
    entry.ids = prompt->data();
    entry.count = prompt->size();
    entry.progress = [](void* user_data, uint64_t done, uint64_t total) {
      const auto& on_read = static_cast<Results*>(user_data)->on_read;
      if (on_read) on_read(done, total);
      return static_cast<int>(SignalReceived() != 0);
    };
  }
  entry.sampling = &sampling;
  entry.user_data = results;
  entry.on_token = [](void* user_data, const tiercel_token* token) {
    static_cast<Results*>(user_data)->on_token(*token);
    return static_cast<int>(SignalReceived() != 0);
  };
  const tiercel_on_end on_end = [](void* user_data, tiercel_status status,
                                   const tiercel_error* error) {
    static_cast<Results*>(user_data)->on_end(FromApi(status, *error));
  };
  sessions_.insert(entry.session);
  tiercel_error error = Defaults<tiercel_error>();
  return FromApi(tiercel_queue_add(queue_.get(), &entry, on_end, &error),
                 error);
}

void Queue::CancelOnSignalIn(absl::FunctionRef<void()> wait) const {
  const CancelOnSignal cancel({sessions_.begin(), sessions_.end()});
  wait();
}

absl::StatusOr<Json> MeasureMachine(int32_t threads,
                                    const ProgressFn& progress) {
  auto params = Defaults<tiercel_machine_params>();
  params.progress = OnProgress;
  params.user_data = UserData(progress);
  params.threads = threads;
  return FillJson([&](char* text, size_t* size, tiercel_error* error) {
    return tiercel_machine(&params, text, size, error);
  });
}

absl::StatusOr<Json> ListCache(const std::string& folder) {
  return FillJson([&](char* text, size_t* size, tiercel_error* error) {
    return tiercel_cache_list(folder.c_str(), text, size, error);
  });
}

absl::StatusOr<size_t> ClearCache(const std::string& folder) {
  size_t removed = 0;
  tiercel_error error = Defaults<tiercel_error>();
  const tiercel_status status =
      tiercel_cache_clear(folder.c_str(), &removed, &error);
  if (status != TIERCEL_OK) return FromApi(status, error);
  return removed;
}

}  // namespace tiercel::cli
