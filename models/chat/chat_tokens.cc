#include "models/chat/chat_tokens.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

absl::StatusOr<std::string> TextOf(const Tokenizer& tokenizer,
                                   std::optional<int32_t> id) {
  if (!id.has_value()) return std::string();
  return tokenizer.Piece(*id, Tokenizer::Special::kParse);
}

absl::Status Encode(const ChatTemplate& chat_template,
                    const Tokenizer& tokenizer,
                    std::vector<ChatMessage> messages, bool assistant_speaks,
                    const EncodeLimits& limits, std::vector<int32_t>* ids) {
  ASSIGN_OR_RETURN(std::string bos, TextOf(tokenizer, tokenizer.bos()));
  ASSIGN_OR_RETURN(std::string eos, TextOf(tokenizer, tokenizer.eos()));
  ASSIGN_OR_RETURN(
      const std::vector<ChatPiece> pieces,
      chat_template.Render({.messages = std::move(messages),
                            .add_generation_prompt = assistant_speaks,
                            .bos_token = std::move(bos),
                            .eos_token = std::move(eos)}));
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
                        const EncodeLimits& limits, std::vector<int32_t>* ids) {
  return Encode(chat_template, tokenizer, std::move(messages),
                /*assistant_speaks=*/true, limits, ids);
}

absl::StatusOr<std::vector<int32_t>> AssistantHeader(
    const ChatTemplate& chat_template, const Tokenizer& tokenizer) {
  std::vector<int32_t> with;
  std::vector<int32_t> without;
  for (std::vector<int32_t>* const ids : {&with, &without}) {
    RETURN_IF_ERROR(Encode(chat_template, tokenizer, {{"user", "?"}},
                           /*assistant_speaks=*/ids == &with, EncodeLimits(),
                           ids));
  }
  const auto [header, rest] =
      std::mismatch(with.begin(), with.end(), without.begin(), without.end());
  return std::vector<int32_t>(header, with.end());
}

}  // namespace tiercel
