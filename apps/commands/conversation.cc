#include "apps/commands/conversation.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tiercel::cli {

void Conversation::Say(std::string message, std::string plain) {
  turns_.push_back({std::move(message), std::move(plain)});
}

void Conversation::Answer(std::string text, std::string thought) {
  turns_.back().answer = std::move(text);
  turns_.back().thought = std::move(thought);
}

void Conversation::TakeBack() { turns_.pop_back(); }

bool Conversation::DropOldest(size_t kept) {
  if (turns_.size() <= kept + 1) return false;
  turns_.erase(turns_.begin() + static_cast<std::ptrdiff_t>(kept));
  return true;
}

absl::StatusOr<std::vector<int32_t>> Conversation::Tokens(
    const Model& model, const TextLimits& limits) const {
  std::vector<Message> messages;
  std::string plain = preface_;
  for (const Turn& turn : turns_) {
    messages.push_back(
        {"user", messages.empty() ? preface_ + turn.message : turn.message});
    absl::StrAppend(&plain, turn.plain);
    if (&turn == &turns_.back()) break;
    messages.push_back({"assistant", turn.answer, turn.thought});
    absl::StrAppend(&plain, turn.answer);
  }
  if (model.info().has_template != 0) return model.ChatTokens(messages, limits);
  return model.Tokenize(plain, TIERCEL_ADD_BOS, limits);
}

}  // namespace tiercel::cli
