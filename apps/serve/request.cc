#include "apps/serve/request.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "apps/cli/error.h"
#include "apps/cli/shared_flags.h"
#include "apps/serve/refusal.h"
#include "lib/status/status_macros.h"
#include "lib/text/nesting.h"

namespace tiercel::serve {
namespace {

using cli::SamplingOptions;

constexpr size_t kMostStops = 64;
constexpr size_t kMostStopBytes = 4096;
constexpr size_t kMostBreakers = 64;
constexpr size_t kMostBreakerBytes = 40;

absl::Status Wrong(std::string_view field, const std::string& needed) {
  return Refuse(field, "invalid_request",
                absl::StrCat(std::string(field), ": need ", needed));
}

absl::Status NotBuilt(std::string_view field, const std::string& why = "") {
  return Refuse(field, "unsupported_parameter",
                absl::StrCat(std::string(field), " is not supported", why));
}

// The members of a body, read by type; null is the same as absent. The first
// error stays.
class Members {
 public:
  explicit Members(const Body& body) : body_(body) {}

  // Returns null if there is none.
  const Body* Find(const char* name) const {
    const auto member = body_.find(name);
    return member == body_.end() || member->is_null() ? nullptr : &*member;
  }
  std::optional<int64_t> Int(const char* name, int64_t low, int64_t high) {
    const Body* const value = Find(name);
    if (value == nullptr) return std::nullopt;
    const std::optional<int64_t> number = WholeNumber(*value);
    if (number.has_value() && *number >= low && *number <= high) return number;
    Fail(Wrong(name, absl::StrCat("an integer from ", low, " to ", high)));
    return std::nullopt;
  }
  std::optional<double> Real(const char* name, double low, double high) {
    const Body* const value = Find(name);
    if (value == nullptr) return std::nullopt;
    if (value->is_number()) {
      const auto number = value->get<double>();
      if (number >= low && number <= high) return number;
    }
    Fail(Wrong(name, absl::StrCat("a number from ", low, " to ", high)));
    return std::nullopt;
  }
  bool Bool(const char* name) {
    const Body* const value = Find(name);
    if (value == nullptr) return false;
    if (value->is_boolean()) return value->get<bool>();
    Fail(Wrong(name, "true or false"));
    return false;
  }
  std::string Text(const char* name) {
    const Body* const value = Find(name);
    if (value == nullptr) return "";
    if (value->is_string()) return value->get<std::string>();
    Fail(Wrong(name, "a string"));
    return "";
  }
  // A text, or a list of them; no text may be empty, or have a NUL, or more
  // than `most_bytes`.
  std::optional<std::vector<std::string>> Texts(const char* name, size_t most,
                                                size_t most_bytes) {
    const Body* const value = Find(name);
    if (value == nullptr) return std::nullopt;
    const Body list = value->is_string() ? Body::array({*value}) : *value;
    std::vector<std::string> texts;
    bool well = list.is_array() && list.size() <= most;
    for (size_t i = 0; well && i < list.size(); ++i) {
      well = list[i].is_string();
      if (!well) break;
      texts.push_back(list[i].get<std::string>());
      well = !texts.back().empty() && texts.back().size() <= most_bytes &&
             texts.back().find('\0') == std::string::npos;
    }
    if (well) return texts;
    Fail(Wrong(name, absl::StrCat("a string or at most ", most,
                                  " strings, each of 1 to ", most_bytes,
                                  " bytes without NUL")));
    return std::nullopt;
  }

  void Fail(const absl::Status& error) { status_.Update(error); }
  const absl::Status& status() const { return status_; }

 private:
  static std::optional<int64_t> WholeNumber(const Body& value) {
    if (value.is_number_unsigned() &&
        value.get<uint64_t>() > uint64_t{INT64_MAX}) {
      return std::nullopt;
    }
    if (value.is_number_integer()) return value.get<int64_t>();
    if (!value.is_number_float()) return std::nullopt;
    const auto number = value.get<double>();  // clients write 64.0, too
    if (number != std::floor(number) || std::fabs(number) > 1e15) {
      return std::nullopt;
    }
    return static_cast<int64_t>(number);
  }

  const Body& body_;
  absl::Status status_;
};

// A member that would change the answer, and the values with which it does not;
// null never does, nor do, where nothing else is said, false, 0 and what is
// empty.
struct Unbuilt {
  const char* name;
  std::initializer_list<const char*> harmless;
  bool is_harmless_if_nothing = true;
};
const Unbuilt kUnbuilt[] = {
    {"n", {"1"}, false},
    {"best_of", {"1"}},
    {"tools", {}},
    {"tool_choice", {"\"none\"", "\"auto\""}},
    {"functions", {}},
    {"function_call", {"\"none\"", "\"auto\""}},
    {"logit_bias", {}},
    {"presence_penalty", {}},
    {"frequency_penalty", {}},
    {"structured_outputs", {}},
    {"guided_json", {}},
    {"guided_regex", {}},
    {"guided_choice", {}},
    {"guided_grammar", {}},
    {"audio", {}},
    {"modalities", {"[\"text\"]"}},
    {"web_search_options", {}},
    {"echo", {}},
    {"suffix", {}},
    {"continue_final_message", {}},
    {"add_generation_prompt", {"true"}, false},
    {"chat_template", {}},
    {"documents", {}},
    {"stop_token_ids", {}},
    {"bad_words", {}},
    {"allowed_token_ids", {}},
    {"min_tokens", {}},
    {"mirostat", {}},
    {"typical_p", {"1", "1.0"}},
    {"xtc_probability", {}},
};

bool IsNothing(const Body& value) {
  return value.is_null() || value == false || value == 0 || value == "" ||
         (value.is_structured() && value.empty());
}

absl::Status CheckBuilt(const Members& members) {
  for (const Unbuilt& unbuilt : kUnbuilt) {
    const Body* const value = members.Find(unbuilt.name);
    if (value == nullptr) continue;
    const std::string_view name = unbuilt.name;
    if (IsNothing(*value) && unbuilt.is_harmless_if_nothing) continue;
    const bool harmless = std::any_of(
        unbuilt.harmless.begin(), unbuilt.harmless.end(),
        [&](const char* one) { return *value == Body::parse(one); });
    if (harmless) continue;
    return NotBuilt(name, name == "n" ? ": one answer a request" : "");
  }
  return absl::OkStatus();
}

void ReadSampling(Members& members, SamplingOptions* sampling) {
  constexpr int64_t kMostTokens = cli::kMaxTokens;
  const auto whole = [&](const char* name, int64_t low, int64_t high,
                         auto* to) {
    if (const auto value = members.Int(name, low, high)) {
      *to = static_cast<std::remove_pointer_t<decltype(to)>>(*value);
    }
  };
  const auto real = [&](const char* name, double low, double high, auto* to) {
    if (const auto value = members.Real(name, low, high)) *to = *value;
  };
  // Three names for the same: of OpenAI's two, and of llama.cpp.
  for (const char* const name :
       {"n_predict", "max_tokens", "max_completion_tokens"}) {
    whole(name, -1, kMostTokens, &sampling->max_tokens);
    if (sampling->max_tokens == 0) members.Fail(Wrong(name, "1 or more"));
  }
  if (const auto seed = members.Int("seed", INT64_MIN, INT64_MAX)) {
    sampling->seed = static_cast<uint64_t>(*seed);
  }
  real("temperature", 0, 100, &sampling->temperature);
  real("top_p", 0, 1, &sampling->top_p);
  real("min_p", 0, 1, &sampling->min_p);
  whole("top_k", -1, kMostTokens, &sampling->top_k);
  sampling->top_k = std::max(sampling->top_k, 0);
  // Two names for the same: of llama.cpp, and of others.
  real("repeat_penalty", 1e-3, 100, &sampling->repeat_penalty);
  real("repetition_penalty", 1e-3, 100, &sampling->repeat_penalty);
  real("dry_multiplier", 0, 100, &sampling->dry_multiplier);
  if (const auto base = members.Real("dry_base", 1, 100)) {
    sampling->dry_base = base;
  }
  if (const auto length = members.Int("dry_allowed_length", 1, kMostTokens)) {
    sampling->dry_allowed_length = static_cast<int32_t>(*length);
  }
  if (auto breakers = members.Texts("dry_sequence_breakers", kMostBreakers,
                                    kMostBreakerBytes)) {
    sampling->dry_breakers = *std::move(breakers);
  }
  if (auto stops = members.Texts("stop", kMostStops, kMostStopBytes)) {
    sampling->stops = *std::move(stops);
  }
  if (members.Find("ignore_eos") != nullptr) {
    sampling->ignore_eos = members.Bool("ignore_eos");
  }
}

std::string TextOfSchema(const Body& schema) {
  return schema.is_string() ? schema.get<std::string>() : schema.dump();
}

// The grammar that the answer obeys: OpenAI's response_format, or a member of
// llama.cpp's.
absl::Status ReadGrammar(const Members& members, Request* request) {
  using Kind = GrammarSource::Kind;
  std::vector<GrammarSource> found;
  const Body* const format = members.Find("response_format");
  if (format != nullptr && !format->is_object()) {
    return Wrong("response_format", "an object");
  }
  const Body type = format != nullptr ? format->value("type", Body()) : "text";
  if (type != "text") {
    const Body schema = format->value("json_schema", Body());
    const auto said =
        std::count_if(format->begin(), format->end(),
                      [](const Body& member) { return !member.is_null(); });
    if (type == "json_object" && said > 1) {
      return Wrong("response_format", "json_schema, if it has a schema");
    }
    if (type == "json_object") {
      found.push_back({Kind::kJson, "", "response_format"});
    } else if (type != "json_schema") {
      return Wrong("response_format.type", "text, json_object or json_schema");
    } else if (!schema.is_object() || !schema.contains("schema")) {
      return Wrong("response_format.json_schema", "an object with a schema");
    } else {
      found.push_back({Kind::kJsonSchema, TextOfSchema(schema["schema"]),
                       "response_format.json_schema.schema"});
    }
  }
  if (const Body* const schema = members.Find("json_schema")) {
    found.push_back({Kind::kJsonSchema, TextOfSchema(*schema), "json_schema"});
  }
  if (const Body* const grammar = members.Find("grammar")) {
    if (!grammar->is_string()) return Wrong("grammar", "a string");
    if (*grammar != "") {
      found.push_back({Kind::kGbnf, grammar->get<std::string>(), "grammar"});
    }
  }
  if (found.empty()) return absl::OkStatus();
  const std::string& name = found.front().name;
  if (found.size() > 1) {
    return Wrong(found.back().name, absl::StrCat("one of it and ", name));
  }
  if (!CheckHasGrammars().ok()) {
    return NotBuilt(name, ": this server was built without grammars");
  }
  const Body* const endless = members.Find("ignore_eos");
  if (endless != nullptr && *endless == true) {
    return Wrong("ignore_eos", absl::StrCat("no ", name,
                                            " beside it, which "
                                            "says where the answer ends"));
  }
  request->grammar = std::move(found.front());
  return absl::OkStatus();
}

// A chat says whether tokens come with log-probabilities, and beside how many
// of the likeliest; a completion says the second alone.
void ReadLogProbs(Endpoint endpoint, Members& members,
                  SamplingOptions* sampling) {
  constexpr int64_t kMostTop = 20;
  const char* const kTop = "top_logprobs";
  if (endpoint == Endpoint::kCompletion) {
    sampling->top_log_probs = members.Int("logprobs", 0, kMostTop);
    const Body* const top = members.Find(kTop);
    if (top != nullptr && !IsNothing(*top)) {
      members.Fail(NotBuilt(kTop, ": completions say logprobs"));
    }
    return;
  }
  const int64_t top = members.Int(kTop, 0, kMostTop).value_or(0);
  if (members.Bool("logprobs")) {
    sampling->top_log_probs = top;
  } else if (top > 0) {
    members.Fail(Wrong(kTop, "logprobs: true beside it"));
  }
}

// The text of a message's content: a string, or parts of type "text".
absl::StatusOr<std::string> ContentOf(const Body& content,
                                      const std::string& where) {
  if (content.is_null()) return "";
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) {
    return Wrong(where, "a string or a list of parts");
  }
  std::string text;
  for (const Body& part : content) {
    const Body type = part.is_object() ? part.value("type", Body()) : Body();
    if (!type.is_string()) return Wrong(where, "parts with a type");
    if (type != "text" && type != "input_text") {
      return NotBuilt(
          where, absl::StrCat(": a part of type '", type.get<std::string>(),
                              "'; text is"));
    }
    const Body words = part.value("text", Body());
    if (!words.is_string()) return Wrong(where, "parts with a text");
    text += words.get<std::string>();
  }
  return text;
}

absl::StatusOr<Message> ReadMessage(const Body& message,
                                    const std::string& where) {
  if (!message.is_object()) return Wrong(where, "an object");
  const Body given = message.value("role", Body());
  std::string role = given.is_string() ? given.get<std::string>() : "";
  if (role == "developer") role = "system";
  if (role == "tool" || role == "function") {
    return NotBuilt(where + ".role", absl::StrCat(": '", role, "'"));
  }
  if (role != "system" && role != "user" && role != "assistant") {
    return Wrong(where + ".role", "system, developer, user or assistant");
  }
  for (const char* calls : {"tool_calls", "function_call"}) {
    if (!IsNothing(message.value(calls, Body()))) {
      return NotBuilt(absl::StrCat(where, ".", calls));
    }
  }
  ASSIGN_OR_RETURN(
      std::string content,
      ContentOf(message.value("content", Body()), where + ".content"));
  const Body thought = message.value("reasoning_content", Body());
  if (!thought.is_null() && !thought.is_string()) {
    return Wrong(where + ".reasoning_content", "a string");
  }
  return Message{std::move(role), std::move(content),
                 thought.is_string() ? thought.get<std::string>() : ""};
}

absl::Status ReadMessages(const Body& body, Request* request) {
  const Body messages = body.value("messages", Body());
  if (!messages.is_array() || messages.empty()) {
    return Wrong("messages", "a list with a message or more");
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    ASSIGN_OR_RETURN(
        Message message,
        ReadMessage(messages[i], absl::StrCat("messages[", i, "]")));
    request->messages.push_back(std::move(message));
  }
  // Clients send the place of the answer as an empty message.
  const Message& last = request->messages.back();
  if (request->messages.size() > 1 && last.role == "assistant" &&
      last.content.empty()) {
    request->messages.pop_back();
  }
  return absl::OkStatus();
}

absl::Status ReadTemplate(const Members& members, const std::string& defaults,
                          Request* request) {
  const Body* const own = members.Find("chat_template_kwargs");
  if (own != nullptr && !own->is_object()) {
    return Wrong("chat_template_kwargs", "an object");
  }
  request->template_kwargs = defaults;
  if (own == nullptr) return absl::OkStatus();
  Body all = Body::parse(defaults.empty() ? "{}" : defaults, nullptr,
                         /*allow_exceptions=*/false);
  if (!all.is_object()) all = Body::object();
  all.update(*own);
  request->template_kwargs = all.dump();
  return absl::OkStatus();
}

absl::Status ReadPrompt(const Members& members, Request* request) {
  const Body* prompt = members.Find("prompt");
  if (prompt != nullptr && prompt->is_array() && prompt->size() == 1 &&
      !prompt->front().is_number()) {
    prompt = &prompt->front();
  }
  if (prompt != nullptr && prompt->is_string()) {
    request->prompt = prompt->get<std::string>();
    return absl::OkStatus();
  }
  if (prompt == nullptr || !prompt->is_array() || prompt->empty()) {
    return Wrong("prompt", "a string or a list of token ids");
  }
  for (const Body& id : *prompt) {
    if (id.is_string() || id.is_array()) {
      return NotBuilt("prompt", ": a list of several; one prompt a request");
    }
    if (!id.is_number_integer() || id < 0 ||
        id > std::numeric_limits<int32_t>::max()) {
      return Wrong("prompt", "a string or a list of token ids");
    }
    request->prompt_ids.push_back(id.get<int32_t>());
  }
  return absl::OkStatus();
}

absl::Status ReadStream(Members& members, Request* request) {
  request->stream = members.Bool("stream");
  request->return_progress = members.Bool("return_progress");
  const Body* const options = members.Find("stream_options");
  if (options == nullptr) return absl::OkStatus();
  if (!options->is_object()) return Wrong("stream_options", "an object");
  Members own(*options);
  request->include_usage = own.Bool("include_usage");
  return own.status();
}

absl::Status ReadExtension(const Members& members, Request* request) {
  const Body* const own = members.Find("tiercel");
  if (own == nullptr) return absl::OkStatus();
  if (!own->is_object()) return Wrong("tiercel", "an object");
  for (const auto& [name, value] : own->items()) {
    if (name != "document") {
      return Wrong("tiercel." + name, "no member but document");
    }
    if (!value.is_string() || value == "") {
      return Wrong("tiercel.document", "the name of a file");
    }
    request->document = value.get<std::string>();
  }
  return absl::OkStatus();
}

}  // namespace

void KeepOrderOfSchemas(std::string_view text, std::string_view request,
                        Body* body) {
  using Ordered = nlohmann::ordered_json;
  for (const char* const member :
       {"/json_schema", "/response_format/json_schema/schema"}) {
    const Body::json_pointer place(member);
    // A larger one is refused, and finding a member in order takes long.
    if (!body->contains(place) || !body->at(place).is_object() ||
        body->at(place).dump().size() > kMostGrammarBytes) {
      continue;
    }
    const std::string path = std::string(request) + member;
    const std::vector<std::string> names = absl::StrSplit(path.substr(1), '/');
    const Ordered ordered = Ordered::parse(
        text,
        [&](int depth, Ordered::parse_event_t event, Ordered& key) {
          const auto level = static_cast<size_t>(depth);
          return event != Ordered::parse_event_t::key || level > names.size() ||
                 key == names[level - 1];
        },
        /*allow_exceptions=*/false);
    const Ordered::json_pointer same(path);
    if (ordered.contains(same)) body->at(place) = ordered.at(same).dump();
  }
}

absl::StatusOr<Body> ParseBody(std::string_view text) {
  constexpr int kDeepest = 100;
  if (NestingOf(text, kJsonNesting) > kDeepest) {
    return Refuse("", "invalid_json",
                  absl::StrCat("the body is nested deeper than ", kDeepest));
  }
  // The parser takes a NUL for the end of its input.
  size_t wrong = text.find('\0') + 1;
  Body body;
  if (wrong == 0) {
    try {
      body = Body::parse(text);
    } catch (const Body::parse_error& error) {
      wrong = std::max<size_t>(error.byte, 1);
    } catch (const Body::exception&) {
      wrong = text.size();  // a number that no double holds
    }
  }
  if (wrong > 0) {
    return Refuse(
        "", "invalid_json",
        absl::StrCat("the body is no JSON, or has a number or a character that "
                     "cannot be read, at byte ",
                     wrong));
  }
  if (!body.is_object()) {
    return Refuse("", "invalid_json", "the body: need a JSON object");
  }
  KeepOrderOfSchemas(text, /*request=*/"", &body);
  return body;
}

absl::StatusOr<Request> ReadRequest(Endpoint endpoint, const Body& body,
                                    const cli::Options& defaults) {
  Request request;
  request.endpoint = endpoint;
  request.sampling = defaults.sampling;
  request.sampling.split_thought = endpoint == Endpoint::kChat;
  Members members(body);
  RETURN_IF_ERROR(CheckBuilt(members));
  if (endpoint == Endpoint::kChat) {
    RETURN_IF_ERROR(ReadMessages(body, &request));
    RETURN_IF_ERROR(
        ReadTemplate(members, defaults.model.template_kwargs, &request));
  } else {
    RETURN_IF_ERROR(ReadPrompt(members, &request));
  }
  RETURN_IF_ERROR(ReadStream(members, &request));
  RETURN_IF_ERROR(ReadExtension(members, &request));
  RETURN_IF_ERROR(ReadGrammar(members, &request));
  request.model = members.Text("model");
  ReadSampling(members, &request.sampling);
  ReadLogProbs(endpoint, members, &request.sampling);
  if (!members.status().ok()) return members.status();
  return request;
}

absl::StatusOr<std::vector<int32_t>> PromptTokens(const cli::Model& model,
                                                  const Request& request,
                                                  int64_t context) {
  // A prompt that is a little too long is counted to its end.
  constexpr int64_t kCountedBeyond = int64_t{1} << 17;
  TextLimits limits;
  limits.most_tokens = static_cast<size_t>(context + kCountedBeyond);
  absl::StatusOr<std::vector<int32_t>> ids = request.prompt_ids;
  if (request.endpoint == Endpoint::kChat) {
    ids = model.ChatTokens(request.messages, limits, request.template_kwargs);
  } else if (request.prompt_ids.empty()) {
    ids = model.Tokenize(request.prompt, TIERCEL_ADD_BOS, limits);
  }
  if (!ids.ok() && cli::CodeOf(ids.status()) == "too_long") {
    return TooLong(limits.most_tokens, /*counted=*/false, context);
  }
  RETURN_IF_ERROR(ids.status());
  if (ids->empty()) {
    return Refuse(request.endpoint == Endpoint::kChat ? "messages" : "prompt",
                  "empty_prompt", "the prompt has no tokens");
  }
  if (static_cast<int64_t>(ids->size()) >= context) {
    return TooLong(ids->size(), /*counted=*/true, context);
  }
  const int32_t largest = *std::max_element(ids->begin(), ids->end());
  if (largest >= model.info().vocab) {
    return Refuse("prompt", "invalid_token",
                  absl::StrCat("prompt: token ", largest,
                               " is not in the vocabulary, which has ",
                               model.info().vocab));
  }
  return ids;
}

}  // namespace tiercel::serve
