#include "models/chat/chat_tokens.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/status/status_macros.h"
#include "models/chat/thought_tags.h"

namespace tiercel {
namespace {

absl::StatusOr<std::string> TextOf(const Tokenizer& tokenizer,
                                   std::optional<int32_t> id) {
  if (!id.has_value()) return std::string();
  return tokenizer.Piece(*id, Tokenizer::Special::kParse);
}

// Ends a thought that the template begins for the assistant.
void CloseThought(const ThoughtTags& tags, std::vector<ChatPiece>* pieces) {
  if (pieces->empty() || pieces->back().from_message) return;
  std::string& text = pieces->back().text;
  if (!EndsInThought(text, tags)) return;
  absl::StrAppend(&text, text.ends_with('\n') ? "\n" : "\n\n", tags.close,
                  "\n\n");
}

absl::Status Encode(const ChatTemplate& chat_template,
                    const Tokenizer& tokenizer,
                    std::vector<ChatMessage> messages, bool assistant_speaks,
                    const ChatSettings& settings, const EncodeLimits& limits,
                    std::vector<int32_t>* ids) {
  ASSIGN_OR_RETURN(std::string bos, TextOf(tokenizer, tokenizer.bos()));
  ASSIGN_OR_RETURN(std::string eos, TextOf(tokenizer, tokenizer.eos()));
  ASSIGN_OR_RETURN(
      std::vector<ChatPiece> pieces,
      chat_template.Render({.messages = std::move(messages),
                            .add_generation_prompt = assistant_speaks,
                            .bos_token = std::move(bos),
                            .eos_token = std::move(eos),
                            .settings = settings}));
  if (settings.think == false && assistant_speaks) {
    CloseThought(ThoughtTagsOf(&chat_template, &tokenizer), &pieces);
  }
  std::vector<Tokenizer::Part> parts;
  parts.reserve(pieces.size());
  for (const ChatPiece& piece : pieces) {
    parts.push_back({piece.text, piece.from_message
                                     ? Tokenizer::Special::kPlain
                                     : Tokenizer::Special::kParse});
  }
  return tokenizer.Encode(parts, ids, limits);
}

}  // namespace

absl::Status EncodeChat(const ChatTemplate& chat_template,
                        const Tokenizer& tokenizer,
                        std::vector<ChatMessage> messages,
                        const ChatSettings& settings,
                        const EncodeLimits& limits, std::vector<int32_t>* ids) {
  return Encode(chat_template, tokenizer, std::move(messages),
                /*assistant_speaks=*/true, settings, limits, ids);
}

absl::StatusOr<std::vector<int32_t>> AssistantHeader(
    const ChatTemplate& chat_template, const Tokenizer& tokenizer) {
  std::vector<int32_t> with;
  std::vector<int32_t> without;
  for (std::vector<int32_t>* const ids : {&with, &without}) {
    RETURN_IF_ERROR(Encode(chat_template, tokenizer, {{"user", "?"}},
                           /*assistant_speaks=*/ids == &with, ChatSettings(),
                           EncodeLimits(), ids));
  }
  const auto [header, rest] =
      std::mismatch(with.begin(), with.end(), without.begin(), without.end());
  return std::vector<int32_t>(header, with.end());
}

}  // namespace tiercel
