#include <utility>

#include "apps/commands/command.h"
#include "apps/commands/generation.h"
#include "apps/commands/grammars.h"
#include "apps/commands/input.h"
#include "apps/commands/text_length.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {

absl::Status Generate(const Options& asked) {
  ASSIGN_OR_RETURN(Model model, OpenModel(asked, TIERCEL_LOAD_HEADER));
  ASSIGN_OR_RETURN(Options options, WithGrammar(asked, model));
  ASSIGN_OR_RETURN(std::vector<int32_t> prompt,
                   WithinContext(options, model, Answer::kWanted,
                                 [&](const TextLimits& limits) {
                                   return ReadPrompt(model, options.input,
                                                     limits);
                                 }));
  ASSIGN_OR_RETURN(options, ForPrompts(options, model, prompt.size()));
  RETURN_IF_ERROR(LoadModel(options, &model));
  return RunGeneration(options, model, {{std::move(prompt), ""}},
                       options.warnings);
}

}  // namespace tiercel::cli
