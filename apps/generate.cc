#include <utility>

#include "apps/command.h"
#include "apps/generation.h"
#include "apps/input.h"

namespace tiercel::cli {

absl::Status Generate(const Options& options) {
  absl::StatusOr<Model> model = OpenModel(options, TIERCEL_LOAD_ALL);
  if (!model.ok()) return model.status();
  absl::StatusOr<std::vector<int32_t>> prompt =
      ReadPrompt(*model, options.input);
  if (!prompt.ok()) return prompt.status();
  return RunGeneration(options, *model, {{*std::move(prompt), ""}},
                       options.warnings);
}

}  // namespace tiercel::cli
