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
#include "apps/commands/api.h"

namespace tiercel::cli {

// Whether the context of `options` holds so many tokens. Errors:
// context_length_exceeded, with both counts and what can be done.
absl::Status CheckLength(const Options& options, const Model& model,
                         size_t tokens);

// Most tokens that a prompt and its answer may have together: of a session
// without -c as many as memory has room for. Errors: a plan's; does_not_fit,
// where memory has room for none.
absl::StatusOr<int64_t> MostTokens(const Options& options, const Model& model);

// What makes the model hold so many tokens, with flags that are accepted; empty
// where nothing does.
std::string RoomAdvice(const Options& options, const Model& model,
                       int64_t tokens);

// The ids that `encode` gives, if the context of `options` holds them, and has
// room for an answer where there is to be one. A text that is far too long is
// not counted to its end: the sentence then has an estimate. `around` of the
// ids are not the text's. Errors: CheckLength's; those of `encode`.
enum class Answer { kNone, kWanted };
using EncodeFn = absl::FunctionRef<absl::StatusOr<std::vector<int32_t>>(
    const Model::TextLimits&)>;
absl::StatusOr<std::vector<int32_t>> WithinContext(const Options& options,
                                                   const Model& model,
                                                   Answer answer,
                                                   EncodeFn encode,
                                                   size_t around = 0);

// Whether the context holds a text that is yet to be put into a conversation,
// by itself: of one that it does not hold no copies need be made. `around` is
// how many tokens the conversation has besides. Errors: WithinContext's.
absl::Status CheckTextAlone(const Options& options, const Model& model,
                            std::string_view text, size_t around);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_TEXT_LENGTH_H_
