#ifndef TIERCEL_MODELS_CHAT_CHAT_TOKENS_H_
#define TIERCEL_MODELS_CHAT_CHAT_TOKENS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/chat/chat_template.h"
#include "models/chat/thought_tags.h"
#include "models/tokenizer/tokenizer.h"

namespace tiercel {

// Appends the ids of a conversation, up to the start of the assistant's next
// message, or up to the end of what it has said (ChatSettings::continue_last).
// Special tokens are parsed only in the text that the template wrote: no
// wording of a message can end its turn. If the settings say that the model is
// not to think, a thought that the template begins is closed. Errors: those of
// Render and Encode; invalid_argument, if the last message is not the
// assistant's; cannot_continue, if the template does not show the end of its
// text.
absl::Status EncodeChat(const ChatTemplate& chat_template,
                        const Tokenizer& tokenizer,
                        std::vector<ChatMessage> messages,
                        const ChatSettings& settings,
                        const EncodeLimits& limits, std::vector<int32_t>* ids);

// Returns the ids that the template writes at the start of the assistant's
// message, the last of any conversation; none if it writes nothing there.
// Errors: those of Render and Encode.
absl::StatusOr<std::vector<int32_t>> AssistantHeader(
    const ChatTemplate& chat_template, const Tokenizer& tokenizer);

// Returns true if what follows `prompt` is a thought, since the template begins
// one behind the last message, for a model that is to think, is not to, or is
// not told. A message may have an opening tag, too. Behind a prompt that
// EncodeChat has not made, and without a template (null), it is one if the
// prompt ends in an opening tag.
bool BeginsThought(const ChatTemplate* chat_template,
                   const Tokenizer& tokenizer, const ThoughtTags& tags,
                   const std::vector<int32_t>& prompt);

// Returns the tokens that end the assistant's message, in ascending order:
// those of Tokenizer::Ends, and the one that the template, if there is one,
// writes directly behind such a message, with or without another message after
// it.
std::vector<int32_t> EndsOfTurn(const Tokenizer& tokenizer,
                                const ChatTemplate* chat_template);

}  // namespace tiercel

#endif  // TIERCEL_MODELS_CHAT_CHAT_TOKENS_H_
