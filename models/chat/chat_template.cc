#include "models/chat/chat_template.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "lib/template/interpreter.h"
#include "lib/template/lexer.h"
#include "lib/template/parser.h"
#include "lib/text/quote.h"

namespace tiercel {
namespace {

// A template that exceeds these limits is an attack or a mistake: real ones
// take some hundred steps per message, and some copies of the conversation.
constexpr uint64_t kMaxSteps = 8'000'000;
constexpr size_t kMaxBytes = size_t{32} << 20;
constexpr size_t kMaxCopies = 8;
constexpr size_t kMaxTemplateBytes = size_t{1} << 20;

jinja::Value MakeMessage(jinja::Rendering& rendering,
                         const ChatMessage& message) {
  const auto said = [&rendering](std::string_view text) {
    return jinja::MakeString(rendering,
                             jinja::Text(text, jinja::Origin::kMessage));
  };
  // Templates write the names of roles into control tokens, "<|user|>"; they
  // are no text of a user's.
  constexpr std::string_view kRoles[] = {"system", "developer", "user",
                                         "assistant", "tool"};
  const bool known = std::find(std::begin(kRoles), std::end(kRoles),
                               message.role) != std::end(kRoles);
  std::vector<jinja::Dict::Item> members = {
      {jinja::MakeString(rendering, "role"),
       known ? jinja::MakeString(rendering, message.role) : said(message.role)},
      {jinja::MakeString(rendering, "content"), said(message.content)}};
  if (!message.reasoning.empty()) {
    members.emplace_back(jinja::MakeString(rendering, "reasoning_content"),
                         said(message.reasoning));
  }
  return jinja::MakeDict(rendering, std::move(members));
}

jinja::Value ValueOf(jinja::Rendering& rendering,
                     const nlohmann::ordered_json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) {
    return jinja::MakeString(rendering, json.get<std::string>());
  }
  if (json.is_array()) {
    std::vector<jinja::Value> items;
    for (const nlohmann::ordered_json& item : json) {
      items.push_back(ValueOf(rendering, item));
    }
    return jinja::MakeList(rendering, std::move(items));
  }
  if (json.is_object()) {
    std::vector<jinja::Dict::Item> items;
    for (const auto& [name, item] : json.items()) {
      items.emplace_back(jinja::MakeString(rendering, name),
                         ValueOf(rendering, item));
    }
    return jinja::MakeDict(rendering, std::move(items));
  }
  return jinja::None{};
}

// Returns the first number of `json` that is too large for Jinja's integers.
std::optional<uint64_t> TooLarge(const nlohmann::ordered_json& json) {
  if (json.is_number_unsigned()) {
    const auto number = json.get<uint64_t>();
    if (number > std::numeric_limits<int64_t>::max()) return number;
  } else if (json.is_structured()) {
    for (const nlohmann::ordered_json& item : json) {
      if (const auto number = TooLarge(item)) return number;
    }
  }
  return std::nullopt;
}

absl::Status CheckVariables(const nlohmann::ordered_json& variables) {
  if (!variables.is_object()) {
    return UsageError(
        "invalid_argument",
        absl::StrCat("the template's variables: got ", variables.type_name(),
                     ", need a JSON object"));
  }
  for (const char* const own :
       {"messages", "add_generation_prompt", "bos_token", "eos_token", "tools",
        "documents"}) {
    if (variables.contains(own)) {
      return UsageError("invalid_argument",
                        absl::StrCat("the template's variables: \"", own,
                                     "\" is set by the conversation itself"));
    }
  }
  if (const auto number = TooLarge(variables)) {
    return UsageError("invalid_argument",
                      absl::StrCat("the template's variables: got ", *number,
                                   ", need integers below 2^63"));
  }
  return absl::OkStatus();
}

size_t BytesOf(const std::vector<ChatMessage>& messages) {
  size_t bytes = 0;
  for (const ChatMessage& message : messages) {
    bytes += message.role.size() + message.content.size() +
             message.reasoning.size() + 512;
  }
  return bytes;
}

// Returns the template in the field of `file`: a string, or of a list or an
// object of named templates the only one or the "default" one. Empty if there
// is none.
absl::StatusOr<std::optional<std::string>> FromConfig(
    const std::string& file, const nlohmann::json& config) {
  const auto field = config.find("chat_template");
  if (field == config.end() || field->is_null()) return std::nullopt;
  if (field->is_string()) return field->get<std::string>();
  if (!field->is_structured()) {
    return InputError("template_error",
                      file + ": chat_template is neither a string nor a list");
  }
  std::map<std::string, std::string> named;
  if (field->is_object()) {
    for (const auto& [name, text] : field->items()) {
      if (text.is_string()) named.emplace(name, text.get<std::string>());
    }
  }
  for (const nlohmann::json& entry : *field) {
    if (!field->is_array() || !entry.is_object()) continue;
    const auto name = entry.find("name");
    const auto text = entry.find("template");
    if (name != entry.end() && name->is_string() && text != entry.end() &&
        text->is_string()) {
      named.emplace(name->get<std::string>(), text->get<std::string>());
    }
  }
  if (named.size() == 1) return named.begin()->second;
  const auto found = named.find("default");
  if (found != named.end()) return found->second;
  std::string names;
  for (const auto& [name, text] : named) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", Quoted(name));
  }
  return InputError("template_error",
                    absl::StrCat(file, ": chat_template has ",
                                 names.empty() ? "no template" : names,
                                 ", need \"default\""));
}

absl::StatusOr<std::optional<std::string>> FindSource(
    const Checkpoint& checkpoint) {
  if (checkpoint.format() == Checkpoint::Format::kGguf) {
    return checkpoint.metadata().FindString("tokenizer.chat_template");
  }
  const nlohmann::json& files = checkpoint.side_files();
  if (!files.is_object()) return std::nullopt;
  const auto file = files.find("chat_template.jinja");
  if (file != files.end() && file->is_string()) {
    return file->get<std::string>();
  }
  // Models that also see have it in a file of their processor.
  for (const char* const name :
       {"tokenizer_config.json", "chat_template.json"}) {
    const auto config = files.find(name);
    if (config == files.end() || !config->is_object()) continue;
    ASSIGN_OR_RETURN(std::optional<std::string> source,
                     FromConfig(name, *config));
    if (source.has_value()) return source;
  }
  return std::nullopt;
}

}  // namespace

struct ChatTemplate::Impl {
  jinja::Body body;
  std::string source;
};

ChatTemplate::ChatTemplate() : impl_(std::make_unique<Impl>()) {}
ChatTemplate::~ChatTemplate() = default;
const std::string& ChatTemplate::source() const { return impl_->source; }

absl::StatusOr<std::unique_ptr<ChatTemplate>> ChatTemplate::Parse(
    std::string_view source) {
  if (source.size() > kMaxTemplateBytes) {
    return jinja::TemplateError(
        1, absl::StrCat("got ", source.size(), " bytes, takes at most ",
                        kMaxTemplateBytes));
  }
  ASSIGN_OR_RETURN(jinja::Body body, jinja::ParseTemplate(source));
  std::unique_ptr<ChatTemplate> chat(new ChatTemplate());
  chat->impl_->body = std::move(body);
  chat->impl_->source = std::string(source);
  return chat;
}

absl::StatusOr<std::unique_ptr<ChatTemplate>> ChatTemplate::Create(
    const Checkpoint& checkpoint) {
  ASSIGN_OR_RETURN(const std::optional<std::string> source,
                   FindSource(checkpoint));
  if (!source.has_value() || source->empty()) return nullptr;
  return Parse(*source);
}

absl::StatusOr<std::vector<ChatPiece>> ChatTemplate::Render(
    const Inputs& inputs) const {
  jinja::Rendering rendering(
      {kMaxSteps, kMaxBytes + kMaxCopies * BytesOf(inputs.messages)});
  jinja::Interpreter interpreter(rendering);
  std::vector<jinja::Value> messages;
  for (const ChatMessage& message : inputs.messages) {
    messages.push_back(MakeMessage(rendering, message));
  }
  interpreter.Define("messages",
                     jinja::MakeList(rendering, std::move(messages)));
  interpreter.Define("add_generation_prompt", inputs.add_generation_prompt);
  interpreter.Define("bos_token",
                     jinja::MakeString(rendering, inputs.bos_token));
  interpreter.Define("eos_token",
                     jinja::MakeString(rendering, inputs.eos_token));
  for (const auto& [name, text] : inputs.named_tokens) {
    interpreter.Define(name, jinja::MakeString(rendering, text));
  }
  interpreter.Define("tools", jinja::None{});
  interpreter.Define("documents", jinja::None{});
  const nlohmann::ordered_json& variables = inputs.settings.variables;
  RETURN_IF_ERROR(CheckVariables(variables));
  // Families differ in the name.
  for (const char* const name : {"enable_thinking", "thinking"}) {
    if (inputs.settings.think.has_value() && !variables.contains(name)) {
      interpreter.Define(name, *inputs.settings.think);
    }
  }
  for (const auto& [name, value] : variables.items()) {
    interpreter.Define(name, ValueOf(rendering, value));
  }
  const jinja::Text text = interpreter.Render(impl_->body);
  if (!rendering.ok()) return rendering.status();
  std::vector<ChatPiece> pieces;
  text.ForEachRun([&pieces](std::string_view part, jinja::Origin origin) {
    pieces.push_back({std::string(part), origin == jinja::Origin::kMessage});
  });
  return pieces;
}

}  // namespace tiercel
