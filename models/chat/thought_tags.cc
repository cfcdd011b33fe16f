#include "models/chat/thought_tags.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

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

using Pieces = std::vector<ChatPiece>;

// Returns the place of the message that is `said` among a template's pieces,
// behind a piece of the template's own; absent: there is none.
std::optional<size_t> PlaceOf(const Pieces& pieces, std::string_view said) {
  for (size_t i = 1; i < pieces.size(); ++i) {
    if (pieces[i].from_message && pieces[i].text == said) return i;
  }
  return std::nullopt;
}

// Returns whether a stretch of a template's text may be a tag: one word, which
// is one control token or has none.
bool MayBeTag(std::string_view text, const Tokenizer* tokenizer) {
  if (text.empty() || std::any_of(text.begin(), text.end(), [](char c) {
        return absl::ascii_isspace(static_cast<unsigned char>(c));
      })) {
    return false;
  }
  std::vector<int32_t> ids;
  if (tokenizer == nullptr) return true;
  if (!tokenizer->Encode(text, Tokenizer::Special::kParse, &ids).ok()) {
    return false;
  }
  return ids.size() == 1 ||
         std::none_of(ids.begin(), ids.end(),
                      [&](int32_t id) { return tokenizer->IsControl(id); });
}

// Returns the tags that the template writes around a thought that the assistant
// had before; absent: it writes none, or what it writes is no tag.
std::optional<ThoughtTags> TagsWrittenBy(const ChatTemplate& chat_template,
                                         const Tokenizer* tokenizer) {
  const std::string thought = "The thought.";
  const std::string answer = "The answer.";
  const auto render = [&](const std::string& reasoning) {
    ChatTemplate::Inputs inputs;
    inputs.messages = {{"user", "The question?"},
                       {"assistant", answer, reasoning}};
    inputs.add_generation_prompt = false;
    return chat_template.Render(inputs).value_or(Pieces());
  };
  const Pieces with = render(thought);
  const Pieces without = render("");
  const std::optional<size_t> at = PlaceOf(with, thought);
  const std::optional<size_t> plain = PlaceOf(without, answer);
  if (!at || !plain || PlaceOf(with, answer) != *at + 2) return std::nullopt;
  // The tag opens behind what begins the assistant's message without a thought.
  const absl::string_view begin =
      absl::StripTrailingAsciiWhitespace(without[*plain - 1].text);
  absl::string_view open = with[*at - 1].text;
  if (!absl::ConsumePrefix(&open, begin)) {
    return std::nullopt;
  }
  ThoughtTags tags;
  tags.open = std::string(absl::StripAsciiWhitespace(open));
  tags.close = std::string(absl::StripAsciiWhitespace(with[*at + 1].text));
  if (!MayBeTag(tags.open, tokenizer) || !MayBeTag(tags.close, tokenizer)) {
    return std::nullopt;
  }
  return tags;
}

ThoughtTags NamesOf(const ChatTemplate* chat_template,
                    const Tokenizer* tokenizer) {
  for (const auto& [open, close] : kKnown) {
    if (chat_template != nullptr &&
        chat_template->source().find(close) != std::string::npos) {
      return {std::string(open), std::string(close)};
    }
  }
  if (chat_template != nullptr) {
    if (const auto written = TagsWrittenBy(*chat_template, tokenizer)) {
      return *written;
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
