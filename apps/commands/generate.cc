#include <utility>

#include "apps/commands/command.h"
#include "apps/commands/generation.h"
#include "apps/commands/input.h"
#include "apps/commands/text_length.h"

namespace tiercel::cli {

absl::Status Generate(const Options& options) {
  absl::StatusOr<Model> model = OpenModel(options, TIERCEL_LOAD_HEADER);
  if (!model.ok()) return model.status();
  absl::StatusOr<std::vector<int32_t>> prompt = WithinContext(
      options, *model, Answer::kWanted, [&](const Model::TextLimits& limits) {
        return ReadPrompt(*model, options.input, limits);
      });
  if (!prompt.ok()) return prompt.status();
  if (absl::Status s = LoadModel(options, &*model); !s.ok()) return s;
  return RunGeneration(options, *model, {{*std::move(prompt), ""}},
                       options.warnings);
}

}  // namespace tiercel::cli
