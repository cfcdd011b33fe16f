#ifndef TIERCEL_APPS_COMMANDS_FOLLOW_UP_H_
#define TIERCEL_APPS_COMMANDS_FOLLOW_UP_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "apps/cli/options.h"
#include "apps/commands/api.h"
#include "apps/commands/conversation.h"
#include "apps/document/document.h"
#include "apps/terminal/typed_lines.h"

namespace tiercel::cli {

// Whether somebody can be asked what they want to know: stdin and stdout are
// terminals, the text did not come from there, --no-talk does not forbid it,
// and neither JSON nor a comparison nor notes are wanted.
bool TakesQuestions(const Options& options);

// What a talk is about, and what of it stays.
struct Subject {
  // The text that is talked about; null: none.
  const document::Document* book = nullptr;
  // Turns that stay when the context is full: the one that has the text.
  size_t kept_turns = 0;
  std::string history;       // the file of what was typed; empty: none
  TypedLines lines = {};     // of a stdin that is no terminal
  std::string summary = {};  // of the text, as it was shown; empty: none was
};

// Answers what `conversation` begins with, if it does, then every line that is
// typed, until the end of input or /quit, in one session: of the text nothing
// is read twice. Where the context is full the oldest turns leave, and that is
// said. Lines that begin with '/' are commands; /help lists them.
// Ctrl-C stops an answer, of which what was written counts as said; where a
// question is awaited, it drops what was typed; before the first answer's first
// word it ends the talk. What cannot be asked (context_length_exceeded, say) is
// explained, and the conversation is as it was; where the lines are not typed
// on a terminal the first such error is returned at the end, without a message.
absl::Status Converse(const Options& options, const Model& model,
                      Conversation conversation, Subject subject);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_FOLLOW_UP_H_
