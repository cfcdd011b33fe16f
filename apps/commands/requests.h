#ifndef TIERCEL_APPS_COMMANDS_REQUESTS_H_
#define TIERCEL_APPS_COMMANDS_REQUESTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "apps/cli/options.h"
#include "apps/commands/conversation.h"

namespace tiercel::cli {

// The requests to the model, in words. Each begins with the same words whatever
// the text is, so that a session reads them once. It asks again behind the
// text, since a small model answers the last thing that it read.

// Makes a conversation about a text.
using TalkFn = std::function<Conversation(const std::string& text)>;

// Asks for a summary of a text that is read at once, as `book` wants it.
Conversation SummaryTalk(const BookOptions& book, const std::string& text);

// Asks for a summary of a part of a longer text, in about `words` words; 0: the
// length is not said.
Conversation PartTalk(const BookOptions& book, int64_t words,
                      const std::string& text);
// Asks to join summaries of parts that follow each other into one.
Conversation JoinTalk(const BookOptions& book, int64_t words,
                      const std::string& summaries);

// Asks for a summary of a short text, or of summaries, in few words, of a model
// that strays from the text in a longer answer.
Conversation SectionTalk(const BookOptions& book, const std::string& text);

// Asks what a part of a longer text says about a question, and for one answer
// from those of all parts, of which alone `book` gives the length. The part
// comes first, so that one reading of it serves every question.
Conversation PartQuestionTalk(const BookOptions& book, const std::string& text,
                              const std::string& question);
Conversation JoinAnswersTalk(const BookOptions& book,
                             const std::string& answers,
                             const std::string& question);
// Returns true for the word by which the answer about a part says that the part
// has none.
bool SaysNothing(std::string_view answer);

// The words before a question about a text, with the text.
std::string TextPreface(const BookOptions& book, const std::string& text);
// Begin with the text, so that one reading of it serves every question. The
// question stands in them as it is, at their end.
Conversation TalkAbout(const BookOptions& book, const std::string& text);
Conversation QuestionTalk(const BookOptions& book, const std::string& text,
                          const std::string& question);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_REQUESTS_H_
