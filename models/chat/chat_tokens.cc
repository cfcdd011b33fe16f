#include "models/chat/chat_tokens.h"

#include <optional>
#include <string>
#include <utility>

namespace tiercel {
namespace {

absl::StatusOr<std::string> TextOf(const Tokenizer& tokenizer,
                                   std::optional<int32_t> id) {
  if (!id.has_value()) return std::string();
  return tokenizer.Piece(*id, Tokenizer::Special::kParse);
}

}  // namespace

absl::Status EncodeChat(const ChatTemplate& chat_template,
                        const Tokenizer& tokenizer,
                        std::vector<ChatMessage> messages,
                        const EncodeLimits& limits, std::vector<int32_t>* ids) {
  absl::StatusOr<std::string> bos = TextOf(tokenizer, tokenizer.bos());
  if (!bos.ok()) return bos.status();
  absl::StatusOr<std::string> eos = TextOf(tokenizer, tokenizer.eos());
  if (!eos.ok()) return eos.status();
  const absl::StatusOr<std::vector<ChatPiece>> pieces =
      chat_template.Render({.messages = std::move(messages),
                            .add_generation_prompt = true,
                            .bos_token = *std::move(bos),
                            .eos_token = *std::move(eos)});
  if (!pieces.ok()) return pieces.status();
  std::vector<Tokenizer::Part> parts;
  parts.reserve(pieces->size());
  for (const ChatPiece& piece : *pieces) {
    parts.push_back({piece.text, piece.from_message
                                     ? Tokenizer::Special::kPlain
                                     : Tokenizer::Special::kParse});
  }
  return tokenizer.Encode(parts, ids, limits);
}

}  // namespace tiercel
