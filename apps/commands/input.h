#ifndef TIERCEL_APPS_COMMANDS_INPUT_H_
#define TIERCEL_APPS_COMMANDS_INPUT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/cli/options.h"
#include "apps/commands/api.h"

namespace tiercel::cli {

// The bytes of a file as they are; "-" is stdin. At most as many as a document
// has; larger files are not read, and an endless device is an error. Errors:
// file_not_found; io_error; not_a_regular_file for a directory;
// input_too_large; a signal.
absl::StatusOr<std::string> ReadInput(const std::string& path);

// Reads a text. Errors: ReadInput's, and not_utf8, where it says that it is
// UTF-16.
absl::StatusOr<std::string> ReadText(const std::string& path);

// Reads a text that a model is to read. Errors: ReadText's, and not_text, as a
// document's, for NULs: binary, or UTF-16 that does not say so.
absl::StatusOr<std::string> ReadProse(const std::string& path);

// A token file: decimal ids with blanks between. Errors: invalid_token, where
// one is not a number from 0 to 2^31-1.
absl::StatusOr<std::vector<int32_t>> ParseTokens(std::string_view text);

// Text or token file as the ids to run; text gets BOS where the checkpoint
// says so. Errors: those above and of the tokenizer; invalid_token, for one the
// vocabulary has not; empty_prompt.
absl::StatusOr<std::vector<int32_t>> ReadPrompt(
    const Model& model, const InputOptions& input,
    const Model::TextLimits& limits = {});

// Does as ReadPrompt, but gives no more than the first ids of a text that has
// more than `needed`, so many at least: it is not tokenized to its end.
absl::StatusOr<std::vector<int32_t>> ReadBeginning(const Model& model,
                                                   const InputOptions& input,
                                                   size_t needed);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_INPUT_H_
