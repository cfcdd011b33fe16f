#ifndef TIERCEL_APPS_COMMANDS_TEXT_LENGTH_H_
#define TIERCEL_APPS_COMMANDS_TEXT_LENGTH_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "apps/cli/options.h"
#include "apps/commands/model.h"

namespace tiercel::cli {

// Checks that the context of `options` holds `tokens` tokens. Errors:
// context_length_exceeded, with both counts and advice.
absl::Status CheckLength(const Options& options, const Model& model,
                         size_t tokens);

// The most tokens that a prompt and its answer may have together; without -c as
// many as memory has room for. Errors: a plan's; does_not_fit, if memory has
// room for none.
absl::StatusOr<int64_t> MostTokens(const Options& options, const Model& model);

// Advice on flags with which the model holds `tokens` tokens; empty if no flags
// do.
std::string RoomAdvice(const Options& options, const Model& model,
                       int64_t tokens);

// Returns the ids that `encode` gives, if the context of `options` holds them,
// with room for an answer if one is wanted. A text that is far too long is not
// counted to its end; the error then has an estimate. `around` of the ids are
// not the text's. Errors: CheckLength's; those of `encode`.
enum class Answer { kNone, kWanted };
using EncodeFn =
    absl::FunctionRef<absl::StatusOr<std::vector<int32_t>>(const TextLimits&)>;
absl::StatusOr<std::vector<int32_t>> WithinContext(const Options& options,
                                                   const Model& model,
                                                   Answer answer,
                                                   EncodeFn encode,
                                                   size_t around = 0);

// Checks that the context holds a text by itself, before copies of it are made
// for a conversation. `around` is the number of tokens that the conversation
// has besides. Errors: WithinContext's.
absl::Status CheckTextAlone(const Options& options, const Model& model,
                            std::string_view text, size_t around);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_TEXT_LENGTH_H_
