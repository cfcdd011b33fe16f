#include "apps/serve/reply.h"

#include <filesystem>
#include <utility>

#include "include/tiercel.h"

namespace tiercel::serve {
namespace {

Json UsageOf(const Answer& answer) {
  return {{"prompt_tokens", answer.prompt_tokens},
          {"completion_tokens", answer.output_tokens},
          {"total_tokens", answer.prompt_tokens + answer.output_tokens},
          {"prompt_tokens_details", {{"cached_tokens", answer.cached_tokens}}}};
}

Json PerSecond(int64_t tokens, double ms) {
  return ms > 0 ? Json(static_cast<double>(tokens) * 1e3 / ms) : Json();
}

// The names are llama.cpp's, which clients read.
Json TimingsOf(const Answer& answer) {
  const int64_t read = answer.prompt_tokens - answer.cached_tokens;
  return {{"cache_n", answer.cached_tokens},
          {"prompt_n", read},
          {"prompt_ms", answer.prompt_ms},
          {"prompt_per_second", PerSecond(read, answer.prompt_ms)},
          {"predicted_n", answer.output_tokens},
          {"predicted_ms", answer.output_ms},
          {"predicted_per_second",
           PerSecond(answer.output_tokens, answer.output_ms)},
          {"draft_n", answer.drafted},
          {"draft_n_accepted", answer.accepted}};
}

}  // namespace

std::string ModelName(const std::string& path) {
  const std::filesystem::path given(path);
  // A folder may be named with a slash behind it.
  const std::filesystem::path name =
      given.has_filename() ? given.filename() : given.parent_path().filename();
  return name.extension() == ".gguf" ? name.stem() : name;
}

void AddReport(const Json& report, Answer* answer) {
  const Json& output = report.at("output").at(0);
  answer->finish_reason = output.at("finish_reason").get<std::string>();
  answer->output_tokens = static_cast<int64_t>(output.at("tokens").size());
  answer->prompt_tokens = report.at("prompt_tokens").get<int64_t>();
  answer->cached_tokens = report.at("cached_tokens").get<int64_t>();
  const Json speculation = report.value("speculation", Json());
  if (!speculation.is_object()) return;
  for (const Json& level : speculation.value("levels", Json::array())) {
    answer->drafted += level.value("drafted", int64_t{0});
    answer->accepted += level.value("accepted", int64_t{0});
  }
}

Json Reply::Head(const char* object) const {
  return {{"id", id_},
          {"object", object},
          {"created", created_},
          {"model", model_},
          {"system_fingerprint", tiercel_version()}};
}

Json Reply::Whole(const Answer& answer) const {
  const bool chat = endpoint_ == Endpoint::kChat;
  Json choice = {{"index", 0}};
  if (chat) {
    choice["message"] = {{"role", "assistant"}, {"content", answer.text}};
    if (!answer.thought.empty()) {
      choice["message"]["reasoning_content"] = answer.thought;
    }
  } else {
    choice["text"] = answer.text;
  }
  choice["logprobs"] = answer.log_probs;
  choice["finish_reason"] = answer.finish_reason;
  Json document = Head(chat ? "chat.completion" : "text_completion");
  document["choices"] = Json::array({std::move(choice)});
  document["usage"] = UsageOf(answer);
  document["timings"] = TimingsOf(answer);
  return document;
}

Json Reply::Chunk(Json delta, std::string_view text, Json log_probs,
                  Json finish_reason) const {
  const bool chat = endpoint_ == Endpoint::kChat;
  Json choice = {{"index", 0}};
  if (chat) {
    choice["delta"] = std::move(delta);
  } else {
    choice["text"] = text;
  }
  choice["logprobs"] = std::move(log_probs);
  choice["finish_reason"] = std::move(finish_reason);
  Json chunk = Head(chat ? "chat.completion.chunk" : "text_completion");
  chunk["choices"] = Json::array({std::move(choice)});
  if (has_usage_) chunk["usage"] = nullptr;
  return chunk;
}

Json Reply::FirstChunk() const {
  return Chunk({{"role", "assistant"}, {"content", ""}}, "");
}

Json Reply::ProgressChunk(const ReadProgress& progress) const {
  Json chunk = Chunk(Json::object(), "");
  chunk["prompt_progress"] = {{"total", progress.total},
                              {"cache", progress.cached},
                              {"processed", progress.processed},
                              {"time_ms", progress.ms}};
  return chunk;
}

Json Reply::TextChunk(std::string_view text, std::string_view thought,
                      Json log_probs) const {
  Json delta = Json::object();
  if (!thought.empty()) delta["reasoning_content"] = thought;
  if (!text.empty()) delta["content"] = text;
  return Chunk(std::move(delta), text, std::move(log_probs));
}

Json Reply::LastChunk(const Answer& answer) const {
  Json chunk =
      Chunk(Json::object(), "", answer.log_probs, answer.finish_reason);
  chunk["timings"] = TimingsOf(answer);
  return chunk;
}

Json Reply::UsageChunk(const Answer& answer) const {
  Json chunk = Head(endpoint_ == Endpoint::kChat ? "chat.completion.chunk"
                                                 : "text_completion");
  chunk["choices"] = Json::array();
  chunk["usage"] = UsageOf(answer);
  return chunk;
}

}  // namespace tiercel::serve
