#ifndef TIERCEL_APPS_COMMANDS_AT_ONCE_H_
#define TIERCEL_APPS_COMMANDS_AT_ONCE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/cli/options.h"
#include "apps/commands/api.h"
#include "apps/commands/generation.h"

namespace tiercel::cli {

// Returns true if several texts are made at once: where no model drafts, whose
// memory is planned for one text. A text that is compared with its baseline
// needs its own times.
bool MakesAtOnce(const Options& options, size_t texts);

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
