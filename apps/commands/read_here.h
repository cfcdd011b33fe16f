#ifndef TIERCEL_APPS_COMMANDS_READ_HERE_H_
#define TIERCEL_APPS_COMMANDS_READ_HERE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/cli/options.h"
#include "apps/commands/generation.h"
#include "apps/commands/model.h"
#include "lib/documents/document.h"

namespace tiercel::cli {

// Returns the passages of a book to which the question of the last answer of
// `generator` attended more than other questions do
// (tiercel_session_attended_beside): that with this number of `options`, beside
// one that could be asked of any book and at most two of the other questions.
// They are at most three, the one with most first, as [{"text", "share",
// "chapters", "pages", "place"}], and none if no passage stands out. They show
// where the model read, and do not prove its words. null if that cannot be
// known: the book or the question is not in the prompt verbatim. Errors: an
// interruption.
absl::StatusOr<Json> PassagesRead(const Model& model, Generator& generator,
                                  const std::vector<int32_t>& prompt,
                                  const Options& options, size_t number,
                                  const document::Document& book);

// Returns a line for people on each passage, or that there is none.
std::vector<std::string> PassageLines(const Json& passages);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_READ_HERE_H_
