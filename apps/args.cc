#include "apps/args.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "apps/check_together.h"
#include "apps/command_flags.h"
#include "apps/default_paths.h"
#include "apps/error.h"
#include "apps/flags.h"
#include "include/tiercel.h"

namespace tiercel::cli {
namespace {

std::string Usage() {
  std::string usage =
      "Reads whole books on small machines.\n"
      "Usage: tiercel COMMAND [FLAGS]\n\nCommands:\n";
  for (const CommandFlags& command : kCommands) {
    if (command.add_flags == nullptr) continue;
    const std::string pad(12 - std::string(command.name).size(), ' ');
    absl::StrAppend(&usage, "  ", command.name, pad, command.description, "\n");
  }
  return usage +
         "\ntiercel COMMAND --help lists the flags of a command;\n"
         "tiercel --version prints version, commit, build and ISA.\n";
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
    return Error(Exit::kUsage, "usage", "no command\n" + Usage());
  }
  if (args[0] == "--help" || args[0] == "-h" || args[0] == "help") {
    line.print = Usage();
    return line;
  }
  if (args[0] == "--version") {
    line.print = absl::StrCat("tiercel ", tiercel_version(), "\n");
    return line;
  }
  for (const CommandFlags& command : kCommands) {
    if (args[0] != command.name) continue;
    if (command.add_flags == nullptr) {
      return NotInThisVersion(absl::StrCat("tiercel ", command.name));
    }
    line.options.command = command.name;
    FlagSet flags(command.name, command.description);
    command.add_flags(flags, &line.options);
    if (absl::Status s = flags.Parse({args.begin() + 1, args.end()}); !s.ok()) {
      return s;
    }
    if (flags.help_wanted()) {
      line.print = flags.Help();
      return line;
    }
    if (absl::Status s = CheckTogether(&line.options); !s.ok()) return s;
    if (absl::Status s = ChooseModel(&line.options.model); !s.ok()) return s;
    return line;
  }
  return Error(Exit::kUsage, "usage",
               absl::StrCat("unknown command '", args[0],
                            "'; tiercel --help lists them"));
}

}  // namespace tiercel::cli
