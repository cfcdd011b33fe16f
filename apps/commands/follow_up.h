#ifndef TIERCEL_APPS_COMMANDS_FOLLOW_UP_H_
#define TIERCEL_APPS_COMMANDS_FOLLOW_UP_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "apps/cli/options.h"
#include "apps/commands/conversation.h"
#include "apps/commands/model.h"
#include "apps/terminal/typed_lines.h"
#include "lib/documents/document.h"

namespace tiercel::cli {

// Returns true if the user can be asked for questions: stdin and stdout are
// terminals, the text did not come from there, --no-talk does not forbid it,
// and neither JSON nor a comparison nor notes are wanted.
bool TakesQuestions(const Options& options);

// The subject of a talk, and the turns that stay in its context.
struct Subject {
  // The text that is talked about; null: none.
  const document::Document* book = nullptr;
  // The error if the context does not hold the text: each question goes to its
  // parts then (AnswerInParts), and knows of no other.
  absl::Status too_long = absl::OkStatus();
  // Turns that stay when the context is full: the one that has the text.
  size_t kept_turns = 0;
  std::string history;       // path of the typed lines; empty: none is kept
  TypedLines lines = {};     // reads a stdin that is no terminal
  std::string summary = {};  // the text's, as it was shown; empty: none was
  BookOptions asked = {};    // its --words, --language and the like
};

// Answers the question in `conversation`, if there is one, then every line that
// is typed, until the end of input or /quit, in one session, which reads the
// text once. Loads the model, unless it is loaded. When the context is full the
// oldest turns leave, and a note says so. Lines that begin with '/' are
// commands; /help lists them. Ctrl-C stops an answer, whose text so far counts
// as said; at the prompt it drops the line; before the first word of the first
// answer it ends the talk. A question that cannot be asked
// (context_length_exceeded, say) is explained, and leaves the conversation as
// it was; unless the lines are typed on a terminal, the first such error is
// returned at the end, without a message.
absl::Status Converse(const Options& options, Model* model,
                      Conversation conversation, Subject subject);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_FOLLOW_UP_H_
