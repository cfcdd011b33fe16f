#ifndef TIERCEL_APPS_COMMANDS_CONVERSATION_H_
#define TIERCEL_APPS_COMMANDS_CONVERSATION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/commands/api.h"

namespace tiercel::cli {

// What a user and the model have said to each other. Its tokens begin with
// those it had before, up to about the last answer, so that what a session
// holds of them need not be read again.
class Conversation {
 public:
  Conversation() = default;
  // About a text: `preface` stands before the first message, whichever that is.
  explicit Conversation(std::string preface) : preface_(std::move(preface)) {}

  // The user says `message`. A checkpoint without a chat template reads
  // `plain` instead: text up to where the answer is wanted.
  void Say(std::string message, std::string plain);
  // The model's words to what was said last.
  void Answer(std::string text);
  const std::string& answer() const { return turns_.back().answer; }
  // What was said last, and its answer, never was.
  void TakeBack();
  // The oldest turn behind the first `kept` never was; false where the last
  // alone is left.
  bool DropOldest(size_t kept);
  size_t size() const { return turns_.size(); }  // in turns

  // All of it, up to where the model is to speak. Errors: the library's.
  absl::StatusOr<std::vector<int32_t>> Tokens(
      const Model& model, const Model::TextLimits& limits = {}) const;

 private:
  struct Turn {
    std::string message;
    std::string plain;
    std::string answer;
  };
  std::string preface_;
  std::vector<Turn> turns_;
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_CONVERSATION_H_
