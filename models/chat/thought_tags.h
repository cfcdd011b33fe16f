#ifndef TIERCEL_MODELS_CHAT_THOUGHT_TAGS_H_
#define TIERCEL_MODELS_CHAT_THOUGHT_TAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "models/chat/chat_template.h"
#include "models/tokenizer/tokenizer.h"

namespace tiercel {

// The texts between which a model writes a thought before its answer.
struct ThoughtTags {
  std::string open = "<think>";
  std::string close = "</think>";
  // The control tokens that stand for them, which have no text of their own;
  // absent: the tags are text.
  std::optional<int32_t> open_id = std::nullopt;
  std::optional<int32_t> close_id = std::nullopt;
};

// The tags that a checkpoint's template names, or else those that it writes
// around earlier thoughts, or else those that are tokens of its vocabulary;
// those of most models if none is. Both may be null.
ThoughtTags ThoughtTagsOf(const ChatTemplate* chat_template,
                          const Tokenizer* tokenizer);

// Returns true if `text` ends within a thought: no closing tag stands behind
// its last opening tag.
bool EndsInThought(std::string_view text, const ThoughtTags& tags);

}  // namespace tiercel

#endif  // TIERCEL_MODELS_CHAT_THOUGHT_TAGS_H_
