#ifndef TIERCEL_APPS_COMMANDS_REQUESTS_H_
#define TIERCEL_APPS_COMMANDS_REQUESTS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "apps/cli/options.h"
#include "apps/commands/conversation.h"

namespace tiercel::cli {

// What the model is asked, in words. Each begins with the same words whatever
// the text is, so that a session reads them once, and asks again behind it: a
// small model has the text between the request and the answer, and answers the
// last thing it read.

// What is said of a text.
using TalkFn = std::function<Conversation(const std::string& text)>;

// A summary of a text that is read at once, as `book` wants it.
Conversation SummaryTalk(const BookOptions& book, const std::string& text);

// One of the parts of a longer text, in about `words` words; 0: not said.
Conversation PartTalk(const BookOptions& book, int64_t words,
                      const std::string& text);
// Summaries of parts that follow each other, as one.
Conversation JoinTalk(const BookOptions& book, int64_t words,
                      const std::string& summaries);

// A short text, or summaries, for a model that keeps to what it read while it
// says little.
Conversation SectionTalk(const BookOptions& book, const std::string& text);

// The text comes first, so that one reading of it serves every question.
Conversation TalkAbout(const std::string& text);
Conversation QuestionTalk(const std::string& text, const std::string& question);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_REQUESTS_H_
