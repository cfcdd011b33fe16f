#ifndef TIERCEL_MODELS_CHAT_CHAT_TOKENS_H_
#define TIERCEL_MODELS_CHAT_CHAT_TOKENS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/chat/chat_template.h"
#include "models/tokenizer/tokenizer.h"

namespace tiercel {

// The ids of a conversation that ends where the assistant is to speak. Special
// tokens are parsed in what the template wrote and nowhere else: no wording of
// a message can end its turn. Errors: those of Render and Encode.
absl::Status EncodeChat(const ChatTemplate& chat_template,
                        const Tokenizer& tokenizer,
                        std::vector<ChatMessage> messages,
                        const EncodeLimits& limits, std::vector<int32_t>* ids);

// The ids that the template writes where the assistant is to speak, the last of
// any conversation; none where it writes nothing there. Errors: those of Render
// and Encode.
absl::StatusOr<std::vector<int32_t>> AssistantHeader(
    const ChatTemplate& chat_template, const Tokenizer& tokenizer);

}  // namespace tiercel

#endif  // TIERCEL_MODELS_CHAT_CHAT_TOKENS_H_
