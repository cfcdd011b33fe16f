#ifndef TIERCEL_APPS_COMMANDS_AT_ONCE_H_
#define TIERCEL_APPS_COMMANDS_AT_ONCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/cli/options.h"
#include "apps/commands/generation.h"
#include "apps/commands/model.h"

namespace tiercel::cli {

// Returns true if several texts are made at once: where no model drafts, whose
// memory is planned for one text. A text that is compared with its baseline
// needs its own times.
bool MakesAtOnce(const Options& options, size_t texts);

// The sizes of texts that may be made at once, in tokens.
struct TextSizes {
  size_t count;    // texts
  size_t longest;  // tokens of the longest prompt
  size_t own;      // most of the tokens of a prompt that not all prompts share
};

// `options` of a session that makes `at_once` of such texts at once.
Options OptionsFor(const Options& options, const Model& model,
                   const TextSizes& texts, size_t at_once);

// The numbers of texts to make at once, the best first, up to 1. Memory for
// forks holds fewer pages of the text that they share, so more of these cross
// the link for all: the best number gives the most rows a second.
std::vector<size_t> CountsAtOnce(const Options& options, const Model& model,
                                 const TextSizes& texts);

// The most texts that are made at once if memory has room for them.
size_t MostAtOnce(const Options& options, const TextSizes& texts);

// The session of texts that are made at once, and the most of them.
struct Together {
  std::unique_ptr<Options> options;  // the generator's
  Generator generator;
  size_t most;
};

// Opens a session with memory for as many texts at once as it has room for, if
// need be for one. Errors: Generator::Open's.
absl::StatusOr<Together> OpenTogether(const Options& options,
                                      const Model& model,
                                      const TextSizes& texts);

// Takes a prompt and a seed, the number of texts that were made at once, and
// the text that they gave, or its error.
using EachText = absl::FunctionRef<absl::Status(Generator&, const Prompt&,
                                                uint64_t seed, size_t at_once,
                                                absl::StatusOr<Json> report)>;

// Makes the texts of all prompts and seeds, several at once in forks of one
// session, and calls `each` for every text, `begin` before the first of some.
// An interruption ends all of them, and each is told of its own. As many are
// made at once as memory serves best, by the plan; it says so if that is less
// than could be.
absl::Status MakeAtOnce(const Options& options, const Model& model,
                        const std::vector<Prompt>& prompts,
                        const SeedRange& seeds,
                        absl::FunctionRef<void(const Generator&)> begin,
                        EachText each);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_AT_ONCE_H_
