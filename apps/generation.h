#ifndef TIERCEL_APPS_GENERATION_H_
#define TIERCEL_APPS_GENERATION_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "apps/api.h"
#include "apps/options.h"

namespace tiercel::cli {

// Reads `prompt` once, continues it for every seed of `options` and writes the
// texts, or the JSON document (for several seeds: `output` has one entry for
// each, with its times; the rest of the document is the first run's, the one
// that read the prompt).
absl::Status RunGeneration(const Options& options, const Model& model,
                           const std::vector<int32_t>& prompt);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_GENERATION_H_
