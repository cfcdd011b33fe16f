#ifndef TIERCEL_APPS_CLI_COMMAND_FLAGS_H_
#define TIERCEL_APPS_CLI_COMMAND_FLAGS_H_

#include <array>
#include <string>
#include <vector>

#include "apps/cli/flags.h"
#include "apps/cli/options.h"

namespace tiercel::cli {

// A command as its user sees it.
struct CommandFlags {
  const char* name;
  const char* brief;  // fits a line of the list of commands
  const char* description;
  void (*add_flags)(FlagSet& flags, Options* options);
  // The flags that --help shows, and the command lines that --help-all shows;
  // --help shows the first of these.
  std::vector<std::string> usual_flags;
  std::vector<std::string> examples;
};

// All commands, in the order in which they are listed.
extern const std::array<CommandFlags, 14> kCommands;

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_CLI_COMMAND_FLAGS_H_
