#ifndef TIERCEL_MODELS_CHAT_CHAT_TEMPLATE_H_
#define TIERCEL_MODELS_CHAT_CHAT_TEMPLATE_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "models/format/checkpoint.h"
#include "nlohmann/json.hpp"

namespace tiercel {

struct ChatMessage {
  std::string role;  // system, user, assistant
  std::string content;
  // A thought that the assistant had before; empty: none.
  std::string reasoning = {};
};

// Settings of a template.
struct ChatSettings {
  // Has the model think, or not; absent: as the template does by itself.
  std::optional<bool> think = std::nullopt;
  // An object: variables of the template, by name, in their order.
  nlohmann::ordered_json variables = nlohmann::ordered_json::object();
  // The last message, the assistant's, goes on; it is not followed by another.
  bool continue_last = false;
};

// A piece of a rendered conversation, either written by the template, where
// special tokens may be parsed, or taken from a message, where they may not.
struct ChatPiece {
  std::string text;
  bool from_message;
};

// The checkpoint's own Jinja template, compiled. The language is the subset of
// Jinja2 that chat templates use (README of this folder), with trim_blocks and
// lstrip_blocks on; limits on depth, steps, range() and output size hold since
// the template comes from the model file. Immutable and thread-safe.
class ChatTemplate {
 public:
  // Errors: template_error with the line.
  static absl::StatusOr<std::unique_ptr<ChatTemplate>> Parse(
      std::string_view source);

  // Compiles the checkpoint's template (GGUF: tokenizer.chat_template;
  // safetensors: chat_template.jinja, tokenizer_config.json or
  // chat_template.json); null if it has none.
  static absl::StatusOr<std::unique_ptr<ChatTemplate>> Create(
      const Checkpoint& checkpoint);

  ~ChatTemplate();

  struct Inputs {
    std::vector<ChatMessage> messages;
    bool add_generation_prompt = true;
    std::string bos_token;
    std::string eos_token;
    ChatSettings settings = {};
    // Texts of further tokens by their names; settings.variables go before.
    std::vector<std::pair<std::string, std::string>> named_tokens = {};
  };
  // Adjacent pieces of one origin are joined. Errors: template_error with the
  // line, or the template's own raise_exception message; invalid_argument for
  // variables that are no object, or have the name of another input.
  absl::StatusOr<std::vector<ChatPiece>> Render(const Inputs& inputs) const;

  const std::string& source() const;

 private:
  ChatTemplate();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tiercel

#endif  // TIERCEL_MODELS_CHAT_CHAT_TEMPLATE_H_
