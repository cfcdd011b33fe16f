#ifndef TIERCEL_APPS_CLI_ARGS_H_
#define TIERCEL_APPS_CLI_ARGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/cli/options.h"

namespace tiercel::cli {

// The request of the command line and the environment.
struct CommandLine {
  Options options;
  std::string print;  // --help or --version: print this and exit 0
};

// Parses `args`, which lack the program's name. Reads TIERCEL_MODEL,
// TIERCEL_ISA, XDG_CACHE_HOME and HOME. Every error is kUsage and names the
// command, flag or variable.
absl::StatusOr<CommandLine> ParseArgs(const std::vector<std::string>& args);

// Returns true if errors are wanted as JSON, also where ParseArgs fails.
bool WantsJson(const std::vector<std::string>& args);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_CLI_ARGS_H_
