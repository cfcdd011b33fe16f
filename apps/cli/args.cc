#include "apps/cli/args.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "apps/cli/check_together.h"
#include "apps/cli/command_flags.h"
#include "apps/cli/default_paths.h"
#include "apps/cli/error.h"
#include "apps/cli/flags.h"
#include "apps/cli/help.h"
#include "apps/cli/suggestion.h"
#include "apps/cli/tried.h"
#include "include/tiercel.hpp"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

std::string Usage(bool all) {
  HelpSection commands = {"Commands", {}};
  for (const CommandFlags& command : kCommands) {
    commands.rows.push_back(
        {command.name, all ? command.description : command.brief});
  }
  const HelpSection more = {
      "More",
      {{"tiercel help COMMAND", "its usual flags; with --help-all all of them"},
       {"tiercel --help-all", "the variables that all heed"},
       {"tiercel --version", "version, commit, build and ISA"}}};
  return absl::StrCat(
      "Reads long texts on small machines, and books beyond the model's "
      "context.\n"
      "Usage: tiercel COMMAND [FLAGS], as in tiercel summarize chapter.txt\n",
      HelpText(commands), all ? HelpText(EnvironmentHelp()) : "",
      HelpText(more));
}

bool IsCommand(const std::string& name) {
  return std::any_of(kCommands.begin(), kCommands.end(),
                     [&](const auto& command) { return name == command.name; });
}

// Checks the library's variables, which the library itself reads only where a
// model is opened. Errors: invalid_environment.
absl::Status CheckEnvironment() {
  return Tried([] { check_environment(); });
}

absl::Status UnknownCommand(const std::vector<std::string>& args) {
  const std::string& name = args[0];
  const auto command = std::find_if(args.begin(), args.end(), IsCommand);
  const bool is_flag = !name.empty() && name[0] == '-';
  if (is_flag && command != args.end()) {
    return UsageError(
        absl::StrCat("the command comes before its flags: tiercel ", *command,
                     " ", name, " ..."));
  }
  std::vector<std::string> known = {"help", "version", "--help", "--help-all",
                                    "--version"};
  for (const CommandFlags& one : kCommands) known.push_back(one.name);
  std::string hint = Suggestion(name, known);
  if (hint.empty() && access(name.c_str(), F_OK) == 0) {
    hint = "; a command comes first, as in tiercel summarize FILE";
  }
  if (hint.empty()) hint = "; tiercel help lists them";
  return UsageError(absl::StrCat(
      is_flag ? "no command before '" : "unknown command '", name, "'", hint));
}

bool AsksForHelp(const std::string& arg) {
  return arg == "--help" || arg == "-h" || arg == "--help-all";
}

absl::Status CheckAlone(const std::vector<std::string>& args, size_t most) {
  if (args.size() <= most) return absl::OkStatus();
  return UsageError(
      absl::StrCat(args[0], ": unexpected argument '", args[most], "'"));
}

}  // namespace

bool WantsJson(const std::vector<std::string>& args) {
  const auto end = std::find(args.begin(), args.end(), "--");
  return std::any_of(args.begin(), end, [](const std::string& arg) {
    return arg == "--json" || arg == "--stream";
  });
}

absl::StatusOr<CommandLine> ParseArgs(const std::vector<std::string>& args) {
  CommandLine line;
  if (args.empty()) {
    return UsageError("no command\n" + Usage(/*all=*/false));
  }
  if (args[0] == "help" && args.size() > 1 && !AsksForHelp(args[1])) {
    if (args[1][0] == '-') return CheckAlone(args, 1);
    const bool says_which = args.size() > 2 && AsksForHelp(args[2]);
    RETURN_IF_ERROR(CheckAlone(args, says_which ? 3 : 2));
    return ParseArgs({args[1], says_which ? args[2] : "--help"});
  }
  const bool version =
      args[0] == "--version" || args[0] == "-V" || args[0] == "version";
  if (AsksForHelp(args[0]) || args[0] == "help" ||
      (version && args.size() > 1 && AsksForHelp(args[1]))) {
    line.print = Usage(/*all=*/args.back() == "--help-all");
    return line;
  }
  if (version) {
    RETURN_IF_ERROR(CheckAlone(args, 1));
    RETURN_IF_ERROR(CheckEnvironment());
    line.print = absl::StrCat("tiercel ", tiercel_version(), "\n");
    return line;
  }
  const auto command =
      std::find_if(kCommands.begin(), kCommands.end(),
                   [&](const auto& one) { return args[0] == one.name; });
  if (command == kCommands.end()) return UnknownCommand(args);
  line.options.command = command->name;
  FlagSet flags(command->name, command->description);
  command->add_flags(flags, &line.options);
  RETURN_IF_ERROR(flags.Parse({args.begin() + 1, args.end()}));
  if (flags.help_wanted() != FlagSet::HelpWanted::kNone) {
    line.print =
        flags.help_wanted() == FlagSet::HelpWanted::kAll
            ? flags.Help(command->examples)
            : flags.ShortHelp(command->usual_flags, command->examples.front());
    return line;
  }
  RETURN_IF_ERROR(CheckTogether(&line.options));
  RETURN_IF_ERROR(CheckEnvironment());
  const std::string& name = line.options.command;
  if (name == "cache" || name == "text") return line;  // these need no model
  RETURN_IF_ERROR(ChooseModel(&line.options.model));
  return line;
}

}  // namespace tiercel::cli
