#ifndef TIERCEL_APPS_SERVE_REQUEST_H_
#define TIERCEL_APPS_SERVE_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/cli/options.h"
#include "apps/commands/model.h"
#include "lib/grammar/grammar.h"
#include "nlohmann/json.hpp"

namespace tiercel::serve {

// Bodies from outside. It sorts members, so that many of them cost little.
using Body = nlohmann::json;

// Replaces each JSON schema of a request by its text, whose members are in the
// order of `text`: the answer keeps it, and Body does not. In `text` the
// request stands at `request`: "", or "/body".
void KeepOrderOfSchemas(std::string_view text, std::string_view request,
                        Body* body);

// Parses a body: an object, nested no deeper than any request needs. Schemas in
// it become text (KeepOrderOfSchemas). Errors: invalid_json.
absl::StatusOr<Body> ParseBody(std::string_view text);

enum class Endpoint { kChat, kCompletion };

// A generation as a client asks for it.
struct Request {
  Endpoint endpoint = Endpoint::kChat;
  std::string model;  // the name that the client gave
  // A chat has messages, and variables of its template: an object, or empty. A
  // completion has a prompt, or its tokens.
  std::vector<Message> messages;
  std::string template_kwargs;
  std::string prompt;
  std::vector<int32_t> prompt_ids;
  cli::SamplingOptions sampling;
  std::optional<GrammarSource> grammar;  // absent: the answer is free
  bool stream = false;
  // In a stream: a last chunk with the counts; chunks while the prompt is read.
  bool include_usage = false;
  bool return_progress = false;
  std::string document;  // a file to read first; batches alone
};

// Reads the body of /v1/chat/completions or /v1/completions. `defaults` are the
// sampling, and the variables of the template, where it says nothing. Members
// that are not known are ignored. Errors: invalid_request for a member of a
// wrong type or out of range; unsupported_parameter for one that would change
// the answer in a way that is not built.
absl::StatusOr<Request> ReadRequest(Endpoint endpoint, const Body& body,
                                    const cli::Options& defaults);

// The tokens of the prompt, if a context of `context` tokens holds them with
// room for an answer. Errors: context_length_exceeded, empty_prompt,
// invalid_token, those of the template.
absl::StatusOr<std::vector<int32_t>> PromptTokens(const cli::Model& model,
                                                  const Request& request,
                                                  int64_t context);

}  // namespace tiercel::serve

#endif  // TIERCEL_APPS_SERVE_REQUEST_H_
