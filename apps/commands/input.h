#ifndef TIERCEL_APPS_COMMANDS_INPUT_H_
#define TIERCEL_APPS_COMMANDS_INPUT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/cli/options.h"
#include "apps/commands/model.h"

namespace tiercel::cli {

// Reads the bytes of a file; "-" is stdin. Files larger than a document may be
// are not read, nor is an endless device. Errors: file_not_found; io_error;
// not_a_regular_file for a directory; input_too_large; a signal.
absl::StatusOr<std::string> ReadInput(const std::string& path);

// Reads a text. Errors: ReadInput's, and not_utf8, also for a text whose byte
// order mark says that it is UTF-16.
absl::StatusOr<std::string> ReadText(const std::string& path);

// Reads a text for a model. Errors: ReadText's, and not_text, as for a
// document, if it has NULs: it is binary, or UTF-16 without a mark.
absl::StatusOr<std::string> ReadProse(const std::string& path);

// Parses a token file: decimal ids with blanks between. Errors: invalid_token,
// if one is not a number from 0 to 2^31-1.
absl::StatusOr<std::vector<int32_t>> ParseTokens(std::string_view text);

// Reads a text or a token file as ids; text gets BOS if the checkpoint says so.
// Errors: those above and of the tokenizer; invalid_token, for an id that is
// not in the vocabulary; empty_prompt.
absl::StatusOr<std::vector<int32_t>> ReadPrompt(const Model& model,
                                                const InputOptions& input,
                                                const TextLimits& limits = {});

// Does as ReadPrompt, but tokenizes a long text only so far that it returns at
// least `needed` ids.
absl::StatusOr<std::vector<int32_t>> ReadBeginning(const Model& model,
                                                   const InputOptions& input,
                                                   size_t needed);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_INPUT_H_
