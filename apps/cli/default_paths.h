#ifndef TIERCEL_APPS_CLI_DEFAULT_PATHS_H_
#define TIERCEL_APPS_CLI_DEFAULT_PATHS_H_

#include <string>

#include "absl/status/status.h"
#include "apps/cli/options.h"

namespace tiercel::cli {

// Where this program keeps what it can make again; empty where the environment
// names no home. Reads XDG_CACHE_HOME and HOME.
std::string CacheFolder();
// Where in it the texts are that were read.
std::string TextsFolder();

// Puts the default model where none was named: TIERCEL_MODEL, then what demo.sh
// installed. Errors: kUsage, "no_model" where there is none.
absl::Status ChooseModel(ModelOptions* model);

// Where what was typed is kept, $XDG_STATE_HOME/tiercel or the like; empty:
// nowhere.
std::string StateFolder();

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_CLI_DEFAULT_PATHS_H_
