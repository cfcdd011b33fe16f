#ifndef TIERCEL_APPS_COMMANDS_GRAMMARS_H_
#define TIERCEL_APPS_COMMANDS_GRAMMARS_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/cli/options.h"
#include "apps/commands/model.h"
#include "lib/grammar/grammar.h"

namespace tiercel::cli {

// Compiles grammars for the vocabulary of `model`, which has a tokenizer.
// Errors: no_tokenizer; not_built.
absl::StatusOr<std::unique_ptr<GrammarCompiler>> GrammarsOf(const Model& model);

// Returns `options` with the grammar of the file that --json-schema or
// --grammar names, if one does. Errors: those of ReadText and GrammarsOf;
// invalid_grammar.
absl::StatusOr<Options> WithGrammar(Options options, const Model& model);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_GRAMMARS_H_
