#include "models/chat/thought_tags.h"

#include <optional>
#include <vector>

namespace tiercel {
namespace {

// The tags of families that think: most; Magistral and Ministral; Command A;
// Seed-OSS; Kimi-VL; OpenThinker and Sky-T1; Apertus; MiniMax; others.
constexpr struct {
  std::string_view open;
  std::string_view close;
} kKnown[] = {
    {"<think>", "</think>"},
    {"[THINK]", "[/THINK]"},
    {"<|START_THINKING|>", "<|END_THINKING|>"},
    {"<seed:think>", "</seed:think>"},
    {"◁think▷", "◁/think▷"},
    {"<|begin_of_thought|>", "<|end_of_thought|>"},
    {"<|inner_prefix|>", "<|inner_suffix|>"},
    {"<mm:think>", "</mm:think>"},
    {"<thinking>", "</thinking>"},
    {"<thought>", "</thought>"},
    {"<reasoning>", "</reasoning>"},
};

// Returns the token that a tag is; absent: it is none, or several.
std::optional<int32_t> TokenOf(const Tokenizer& tokenizer,
                               std::string_view tag) {
  std::vector<int32_t> ids;
  const absl::Status encoded =
      tokenizer.Encode(tag, Tokenizer::Special::kParse, &ids);
  if (!encoded.ok() || ids.size() != 1) return std::nullopt;
  return ids.front();
}

ThoughtTags NamesOf(const ChatTemplate* chat_template,
                    const Tokenizer* tokenizer) {
  for (const auto& [open, close] : kKnown) {
    if (chat_template != nullptr &&
        chat_template->source().find(close) != std::string::npos) {
      return {std::string(open), std::string(close)};
    }
  }
  for (const auto& [open, close] : kKnown) {
    if (tokenizer != nullptr && TokenOf(*tokenizer, open).has_value() &&
        TokenOf(*tokenizer, close).has_value()) {
      return {std::string(open), std::string(close)};
    }
  }
  return {};
}

}  // namespace

ThoughtTags ThoughtTagsOf(const ChatTemplate* chat_template,
                          const Tokenizer* tokenizer) {
  ThoughtTags tags = NamesOf(chat_template, tokenizer);
  if (tokenizer == nullptr) return tags;
  const auto control = [&](std::string_view tag) {
    const std::optional<int32_t> id = TokenOf(*tokenizer, tag);
    return id.has_value() && tokenizer->IsControl(*id) ? id : std::nullopt;
  };
  tags.open_id = control(tags.open);
  tags.close_id = control(tags.close);
  return tags;
}

bool EndsInThought(std::string_view text, const ThoughtTags& tags) {
  const size_t open = text.rfind(tags.open);
  return open != text.npos && text.find(tags.close, open) == text.npos;
}

}  // namespace tiercel
