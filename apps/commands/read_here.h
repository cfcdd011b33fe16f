#ifndef TIERCEL_APPS_COMMANDS_READ_HERE_H_
#define TIERCEL_APPS_COMMANDS_READ_HERE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/commands/generation.h"
#include "apps/commands/model.h"
#include "lib/documents/document.h"

namespace tiercel::cli {

// Returns the passages of a book that drew most of the attention of the last
// answer of `generator` (tiercel_session_attended): at most three, the one with
// most first, as [{"text", "share", "chapters", "pages", "place"}]. They show
// where the model read, and do not prove its words. None if the book or the
// question is not in the prompt verbatim. Errors: an interruption.
absl::StatusOr<Json> PassagesRead(const Model& model, Generator& generator,
                                  const std::vector<int32_t>& prompt,
                                  const std::string& question,
                                  const document::Document& book);

// Returns a line for people on each passage.
std::vector<std::string> PassageLines(const Json& passages);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_READ_HERE_H_
