#ifndef TIERCEL_APPS_COMMANDS_PART_PROMPTS_H_
#define TIERCEL_APPS_COMMANDS_PART_PROMPTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/cli/options.h"
#include "apps/commands/forecast.h"
#include "apps/commands/model.h"
#include "apps/commands/requests.h"
#include "apps/notes/journal.h"

namespace tiercel::cli {

// The request about a part of a book.
struct PartPrompt {
  std::vector<int32_t> tokens;
  uint64_t fingerprint;  // depends on the tokens and the answer's length
};

// The request that `talk` makes of a text, which gets an answer of so many
// tokens at most; absent if the text is blank.
absl::StatusOr<std::optional<PartPrompt>> PartPromptOf(const TalkFn& talk,
                                                       std::string_view text,
                                                       int64_t most_tokens,
                                                       const Model& model);

// The parts of a book that are left to read.
struct PartsLeft {
  // The prompts of texts that are not in a journal, and the number of those
  // that have KV in the prompt cache.
  std::vector<Forecast::Prompt> prompts;
  size_t found = 0;
};

// Finds those of `texts` that are left. A part that is not to be read has
// an empty text; `whole` are the others' prompts, of which nothing is found
// yet. `options` are those of the sessions. Errors: those of a prompt; an
// interruption.
absl::StatusOr<PartsLeft> FindPartsLeft(
    const Options& options, const Model& model, const reader::Journal& journal,
    const TalkFn& talk, const std::vector<std::string_view>& texts,
    const std::vector<Forecast::Prompt>& whole);

// Words for people where the prompt cache has no room for all prompts, in their
// order: for how many it has, and the flag for all; else empty. `options` are
// those of the sessions.
std::string CacheSizeAdvice(const Options& options, const Model& model,
                            const std::vector<Forecast::Prompt>& whole);

// Returns the flags with which a text whose prompt has so many tokens is read
// at once instead of in parts, or in `sections`; "" if there are none: the
// model was not made for as many, or the context has room for them.
std::string AdviceForWhole(const Options& options, const Model& model,
                           size_t prompt, bool sections);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_PART_PROMPTS_H_
