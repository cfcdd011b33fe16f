#ifndef TIERCEL_APPS_CLI_FLAGS_H_
#define TIERCEL_APPS_CLI_FLAGS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "apps/cli/help.h"

namespace tiercel::cli {

// The flags of one command. CLI11 keeps the table and calls back with the
// values; what is strict about the command line is here:
//   - llama.cpp's long flags with one dash (-ctk, -md) are accepted,
//   - a flag's value is the next argument or follows '=' (or, a number, a short
//     flag: -n10), is not empty, and is not itself a flag of this command
//     (--prompt=--json gives that text),
//   - numbers are read whole and have a range,
//   - nothing is given twice, unless it is repeatable, or its last value
//   counts,
//   - after "--" nothing is a flag; "-" and "-1" never are.
// Every error is kUsage and names the flag with all its spellings.
class FlagSet {
 public:
  FlagSet(const std::string& command, const std::string& description);

  // Sets the heading of the flags that follow, for the help.
  void Group(const std::string& title);

  // `names` is "-t,--threads". A callback is called, and a target written, only
  // where the flag is given.
  using Use = std::function<void(const std::string& value)>;
  void Text(const std::string& names, const std::string& value_name,
            const std::string& description, const Use& use);
  void RepeatableText(const std::string& names, const std::string& value_name,
                      const std::string& description, Use use);
  void Choice(const std::string& names, const std::vector<std::string>& values,
              const std::string& description, std::string* target);
  void Int(const std::string& names, const std::string& description,
           int64_t low, int64_t high, std::function<void(int64_t)> use);
  // A count of tokens; "4k" is 4,096.
  void Tokens(const std::string& names, const std::string& description,
              int64_t low, int64_t high, std::function<void(int64_t)> use);
  void IntList(const std::string& names, const std::string& description,
               int64_t low, int64_t high, std::vector<int64_t>* target);
  enum class Low { kIncluded, kExcluded };
  void Real(const std::string& names, const std::string& description,
            double low, Low low_end, double high,
            std::function<void(double)> use);
  void Real(const std::string& names, const std::string& description,
            double low, Low low_end, double high, double* target);
  void Switch(const std::string& names, const std::string& description,
              std::function<void()> use);

  // The flag `name` may be given several times, and its last value counts: so
  // an alias or a script can be given another one.
  void LastCounts(const std::string& name);

  // The arguments that are no flags; at least one where `required`.
  enum class Need { kRequired, kOptional };
  void Positional(const std::string& name, const std::string& description,
                  Need need, std::string* target);
  void Positionals(const std::string& name, const std::string& description,
                   Need need, std::vector<std::string>* target);

  // Names flags of the contract that this command does not have yet.
  void NotBuilt(const std::vector<std::string>& names);
  // The flags that a surplus argument was probably meant for: if it names an
  // existing file, if it is a number, if it is another text.
  struct StrayFlags {
    std::string file;
    std::string number;
    std::string text;
  };
  void StrayArgumentsAre(const StrayFlags& flags) { stray_ = flags; }

  // Fills the targets from the arguments after the command's name.
  absl::Status Parse(const std::vector<std::string>& args);

  // Set by Parse where --help or --help-all is among the arguments; it then
  // writes no target.
  enum class HelpWanted { kNone, kShort, kAll };
  HelpWanted help_wanted() const { return help_wanted_; }
  // ShortHelp is a page that fits a screen, with the flags of these names and
  // one command line; Help has all flags, and the command lines of `examples`.
  std::string ShortHelp(const std::vector<std::string>& usual_flags,
                        const std::string& example) const;
  std::string Help(const std::vector<std::string>& examples) const;

  // Callbacks refuse the value of a flag by this; Parse catches it.
  [[noreturn]] static void Reject(const std::string& names,
                                  const std::string& needed,
                                  const std::string& got);

 private:
  // Puts `args` into the form that CLI11 takes: every flag under a name that it
  // knows, values apart from their flags, positional arguments last.
  absl::Status Normalize(const std::vector<std::string>& args,
                         std::vector<std::string>* normalized);
  // The flag of that name; null if there is none.
  const CLI::Option* Find(std::string name) const;
  absl::Status Unknown(const std::string& name) const;
  void Number(const std::string& names, const std::string& description,
              int64_t low, int64_t high,
              std::optional<int64_t> (*parse)(std::string_view),
              std::function<void(int64_t)> use);
  std::string Usage() const;
  HelpSection Section(const std::string& group) const;
  HelpSection Arguments() const;

  const std::string command_;
  CLI::App app_;
  std::set<const CLI::Option*> repeatable_;
  std::set<const CLI::Option*> last_counts_;
  std::set<std::string> not_built_;
  StrayFlags stray_;
  size_t most_positionals_ = 0;
  HelpWanted help_wanted_ = HelpWanted::kNone;
};

// The kUsage error for a command, flag or value of the contract that is not
// built yet.
absl::Status NotInThisVersion(std::string_view what);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_CLI_FLAGS_H_
