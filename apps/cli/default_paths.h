#ifndef TIERCEL_APPS_CLI_DEFAULT_PATHS_H_
#define TIERCEL_APPS_CLI_DEFAULT_PATHS_H_

#include <string>

#include "absl/status/status.h"
#include "apps/cli/options.h"

namespace tiercel::cli {

// The folder of files that this program can make again; empty if the
// environment names no home. Reads XDG_CACHE_HOME and HOME.
std::string CacheFolder();
// The folder of the prompt cache, inside CacheFolder.
std::string PromptCacheFolder();

// Chooses the default model if none was named: TIERCEL_MODEL, or else the one
// that demo.sh installed. Errors: kUsage, "no_model" if there is none.
absl::Status ChooseModel(ModelOptions* model);

// The folder of typed lines, $XDG_STATE_HOME/tiercel or the like; empty: they
// are not kept.
std::string StateFolder();

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_CLI_DEFAULT_PATHS_H_
