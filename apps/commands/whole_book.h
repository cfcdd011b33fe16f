#ifndef TIERCEL_APPS_COMMANDS_WHOLE_BOOK_H_
#define TIERCEL_APPS_COMMANDS_WHOLE_BOOK_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/cli/options.h"
#include "apps/commands/model.h"
#include "lib/documents/document.h"

namespace tiercel::cli {

// Answers the questions of `options` about a book that the context does not
// hold: each part of it says what it has about a question, with quotations that
// are looked up, then one answer is made of what was found (ReadAsTree). The KV
// of the parts goes to the prompt cache, so the next question costs a part only
// its own tokens. Writes each answer once it is made, or the JSON document, and
// notes; the places at which parts had something go to stderr. Returns
// `too_long` with advice if the context does not hold even a part.
absl::Status AskInParts(const Options& options, Model* model,
                        const document::Document& book,
                        std::vector<std::string> warnings,
                        const absl::Status& too_long);

// Returns `too_long` with advice if the context does not hold a part of the
// book with a short question.
absl::Status CheckCanAskInParts(const Options& options, Model* model,
                                const document::Document& book,
                                const absl::Status& too_long);

// An answer, and its quotations (QuotationsIn).
struct BookAnswer {
  std::string text;
  Json quotations;
};

// Answers one question so, writes the answer for people, and returns it.
absl::StatusOr<BookAnswer> AnswerInParts(const Options& options, Model* model,
                                         const document::Document& book,
                                         const std::string& question,
                                         const absl::Status& too_long);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_WHOLE_BOOK_H_
