#ifndef TIERCEL_APPS_SERVE_REPLY_H_
#define TIERCEL_APPS_SERVE_REPLY_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "apps/serve/request.h"
#include "apps/terminal/output.h"

namespace tiercel::serve {

using cli::Json;

// The text that a generation gave, and its cost.
struct Answer {
  std::string text;
  std::string thought;
  Json
      log_probs;  // as LogProbs gives them: of all tokens, in a stream the last
  std::string finish_reason = "stop";
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // were found, in a session or on disk
  int64_t output_tokens = 0;
  double prompt_ms = 0;  // from its beginning to the first token
  double output_ms = 0;  // from there to the end
  int64_t drafted = 0;   // tokens, on all levels
  int64_t accepted = 0;
};

// The name of the model that a file or folder holds, for clients.
std::string ModelName(const std::string& path);

// Takes the counts, and the reason of the end, from a session's report.
void AddReport(const Json& report, Answer* answer);

// The part of a prompt that is read.
struct ReadProgress {
  int64_t total = 0;      // tokens of the prompt
  int64_t cached = 0;     // were found
  int64_t processed = 0;  // were found or read
  double ms = 0;
};

// The documents of one reply, whole or in chunks, in the form of its endpoint.
class Reply {
 public:
  Reply(const Request& request, std::string id, int64_t created,
        std::string model)
      : endpoint_(request.endpoint),
        has_usage_(request.include_usage),
        id_(std::move(id)),
        created_(created),
        model_(std::move(model)) {}

  Json Whole(const Answer& answer) const;

  // The chunks of a stream, in their order; the first has the role.
  Json FirstChunk() const;
  Json ProgressChunk(const ReadProgress& progress) const;
  Json TextChunk(std::string_view text, std::string_view thought,
                 Json log_probs) const;
  Json LastChunk(const Answer& answer) const;
  Json UsageChunk(const Answer& answer) const;  // behind the last

  const std::string& id() const { return id_; }

 private:
  // `delta` for a chat, `text` for a completion.
  Json Chunk(Json delta, std::string_view text, Json log_probs = nullptr,
             Json finish_reason = nullptr) const;
  Json Head(const char* object) const;

  const Endpoint endpoint_;
  const bool has_usage_;
  const std::string id_;
  const int64_t created_;  // seconds of the Unix clock
  const std::string model_;
};

}  // namespace tiercel::serve

#endif  // TIERCEL_APPS_SERVE_REPLY_H_
