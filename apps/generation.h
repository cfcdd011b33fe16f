#ifndef TIERCEL_APPS_GENERATION_H_
#define TIERCEL_APPS_GENERATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "apps/api.h"
#include "apps/options.h"

namespace tiercel::cli {

struct Prompt {
  std::vector<int32_t> tokens;
  std::string question;  // what `ask` was asked; empty: no question
};

// Continues each prompt for every seed of `options` in one session, and writes
// the texts, or the JSON document. What a prompt begins with as the one before
// it did is not read again. In JSON `output` has one entry for each run, with
// its times where there are several; the rest is the first run's.
absl::Status RunGeneration(const Options& options, const Model& model,
                           const std::vector<Prompt>& prompts);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_GENERATION_H_
