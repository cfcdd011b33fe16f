#ifndef TIERCEL_APPS_COMMANDS_READ_HERE_H_
#define TIERCEL_APPS_COMMANDS_READ_HERE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/commands/api.h"
#include "apps/commands/generation.h"
#include "apps/document/document.h"

namespace tiercel::cli {

// The passages of a book that an answer looked at most (tiercel_attended), of
// the prompt that `generator` answered last: at most three, the one that it
// looked at most first, as [{"text", "share", "chapters", "pages", "place"}].
// They say where the model read, and prove nothing of what it says. None where
// the book or the question is not in the prompt as it is. Errors: an
// interruption.
absl::StatusOr<Json> PassagesRead(const Model& model, Generator& generator,
                                  const std::vector<int32_t>& prompt,
                                  const std::string& question,
                                  const document::Document& book);

// A line for people on each.
std::vector<std::string> PassageLines(const Json& passages);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_READ_HERE_H_
