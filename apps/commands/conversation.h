#ifndef TIERCEL_APPS_COMMANDS_CONVERSATION_H_
#define TIERCEL_APPS_COMMANDS_CONVERSATION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/commands/model.h"

namespace tiercel::cli {

// The messages of a user and the answers of the model. As it grows, its tokens
// begin with the earlier ones, up to about the last answer, so that a session
// that holds these need not read them again.
class Conversation {
 public:
  Conversation() = default;
  // Begins a conversation about a text: `preface` stands before the first
  // message, even after DropOldest.
  explicit Conversation(std::string preface) : preface_(std::move(preface)) {}

  // Adds a message of the user. A checkpoint without a chat template reads
  // `plain` instead: text that leads up to the answer.
  void Say(std::string message, std::string plain);
  // Sets the model's answer to the last message, and its thought before that,
  // which the template may show it again.
  void Answer(std::string text, std::string thought);
  const std::string& answer() const { return turns_.back().answer; }
  // The last message of the user.
  const std::string& message() const { return turns_.back().message; }
  // Removes the last message and its answer.
  void TakeBack();
  // Removes the oldest turn behind the first `kept`; returns false if that is
  // the last turn.
  bool DropOldest(size_t kept);
  size_t size() const { return turns_.size(); }  // in turns

  // The tokens of all turns, up to the place of the next answer. Errors: the
  // library's.
  absl::StatusOr<std::vector<int32_t>> Tokens(
      const Model& model, const TextLimits& limits = {}) const;

 private:
  struct Turn {
    std::string message;
    std::string plain;
    std::string answer = {};
    std::string thought = {};
  };
  std::string preface_;
  std::vector<Turn> turns_;
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_CONVERSATION_H_
