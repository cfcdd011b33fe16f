#include "apps/cli/flags.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "apps/cli/error.h"
#include "apps/cli/numbers.h"
#include "apps/cli/policies.h"
#include "apps/cli/suggestion.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

// llama.cpp's spellings that CLI11 would read as bundles of short flags.
const std::map<std::string, std::string>& OneDashNames() {
  static const std::map<std::string, std::string> kNames = {
      {"-ctk", "--cache-type-k"},
      {"-ctv", "--cache-type-v"},
      {"-md", "--model-draft"},
      {"-ub", "--ubatch-size"},
  };
  return kNames;
}

// Precedes every positional argument; CLI11 would take "[a,b]" apart.
constexpr char kWhole = '=';

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool LooksLikeFlag(const std::string& arg) {
  return arg.size() > 1 && arg[0] == '-' && arg != "--" && !IsDigit(arg[1]);
}

// The names of a flag ("-t,--threads") as the help shows them, with llama.cpp's
// spelling where it is hidden from CLI11.
std::string Shown(const std::string& names) {
  for (const auto& [one_dash, name] : OneDashNames()) {
    if (name == names) return absl::StrCat(one_dash, ",", name);
  }
  return names;
}

// The name as CLI11 knows it.
std::string Canonical(const std::string& name) {
  const auto one_dash = OneDashNames().find(name);
  return one_dash == OneDashNames().end() ? name : one_dash->second;
}

std::string AllNames(const CLI::Option& option) {
  return Shown(option.get_name(/*positional=*/false, /*all_options=*/true));
}

std::string RangeText(const std::string& noun, const std::string& low,
                      FlagSet::Low low_end, const std::string& high) {
  return absl::StrCat(
      noun, low_end == FlagSet::Low::kIncluded ? " from " : " above ", low,
      low_end == FlagSet::Low::kIncluded ? " to " : ", to ", high);
}

}  // namespace

absl::Status NotInThisVersion(std::string_view what) {
  return Error(Exit::kUsage, "not_in_this_version",
               std::string(what) + " is not in this version");
}

void FlagSet::Reject(const std::string& names, const std::string& needed,
                     const std::string& got) {
  throw CLI::ValidationError(Shown(names),
                             absl::StrCat("got '", got, "', need ", needed));
}

FlagSet::FlagSet(const std::string& command, const std::string& description)
    : command_(command), app_(description, "tiercel " + command) {
  // The help lists these flags in no section.
  app_.set_help_flag("-h,--help")->group("");
  app_.set_help_all_flag("--help-all")->group("");
}

void FlagSet::Group(const std::string& title) {
  app_.option_defaults()->group(title);
}

void FlagSet::Text(const std::string& names, const std::string& value_name,
                   const std::string& description, const Use& use) {
  app_.add_option_function<std::string>(names, use, description)
      ->type_name(value_name);
}

void FlagSet::RepeatableText(const std::string& names,
                             const std::string& value_name,
                             const std::string& description, Use use) {
  CLI::Option* option = app_.add_option_function<std::vector<std::string>>(
      names,
      [use = std::move(use)](const std::vector<std::string>& values) {
        for (const std::string& value : values) use(value);
      },
      description);
  // Takes one value at a time: CLI11 would take all that follow, and split
  // "[a,b]".
  option->type_name(value_name)->expected(1)->allow_extra_args(false);
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  repeatable_.insert(option);
}

void FlagSet::Choice(const std::string& names,
                     const std::vector<std::string>& values,
                     const std::string& description, std::string* target) {
  Text(names, absl::StrJoin(values, "|"), description,
       [names, values, target](const std::string& value) {
         if (std::find(values.begin(), values.end(), value) == values.end()) {
           Reject(names, absl::StrJoin(values, ", "), value);
         }
         *target = value;
       });
}

void FlagSet::Number(const std::string& names, const std::string& description,
                     int64_t low, int64_t high,
                     std::optional<int64_t> (*parse)(std::string_view),
                     std::function<void(int64_t)> use) {
  Text(names, "N", description,
       [=, use = std::move(use)](const std::string& value) {
         const std::optional<int64_t> number = parse(value);
         if (!number.has_value() || *number < low || *number > high) {
           Reject(
               names,
               RangeText(parse == ParseTokenCount ? "an integer (4k is 4096)"
                                                  : "an integer",
                         absl::StrCat(low), Low::kIncluded, absl::StrCat(high)),
               value);
         }
         use(*number);
       });
}

void FlagSet::Int(const std::string& names, const std::string& description,
                  int64_t low, int64_t high, std::function<void(int64_t)> use) {
  Number(names, description, low, high, ParseInt, std::move(use));
}

void FlagSet::Tokens(const std::string& names, const std::string& description,
                     int64_t low, int64_t high,
                     std::function<void(int64_t)> use) {
  Number(names, description, low, high, ParseTokenCount, std::move(use));
}

void FlagSet::IntList(const std::string& names, const std::string& description,
                      int64_t low, int64_t high, std::vector<int64_t>* target) {
  Text(names, "N,...", description,
       [names, low, high, target](const std::string& value) {
         const std::optional<std::vector<int64_t>> list = ParseIntList(value);
         const auto outside = [=](int64_t n) { return n < low || n > high; };
         if (!list.has_value() ||
             std::any_of(list->begin(), list->end(), outside)) {
           Reject(
               names,
               RangeText("integers with commas between, each",
                         absl::StrCat(low), Low::kIncluded, absl::StrCat(high)),
               value);
         }
         *target = *list;
       });
}

void FlagSet::Real(const std::string& names, const std::string& description,
                   double low, Low low_end, double high,
                   std::function<void(double)> use) {
  Text(names, "X", description,
       [names, low, low_end, high,
        use = std::move(use)](const std::string& value) {
         const std::optional<double> number = ParseReal(value);
         if (!number.has_value() || *number < low || *number > high ||
             (low_end == Low::kExcluded && *number == low)) {
           Reject(names,
                  RangeText("a number", absl::StrCat(low), low_end,
                            absl::StrCat(high)),
                  value);
         }
         use(*number);
       });
}

void FlagSet::Real(const std::string& names, const std::string& description,
                   double low, Low low_end, double high, double* target) {
  Real(names, description, low, low_end, high,
       [target](double number) { *target = number; });
}

void FlagSet::Switch(const std::string& names, const std::string& description,
                     std::function<void()> use) {
  app_.add_flag_callback(names, std::move(use), description);
}

void FlagSet::Positional(const std::string& name,
                         const std::string& description, Need need,
                         std::string* target) {
  app_.add_option_function<std::string>(
          name,
          [name, target](const std::string& marked) {
            *target = marked.substr(1);
            if (target->empty()) Reject(name, "a value", *target);
          },
          description)
      ->required(need == Need::kRequired)
      ->type_name("");
  ++most_positionals_;
}

void FlagSet::Positionals(const std::string& name,
                          const std::string& description, Need need,
                          std::vector<std::string>* target) {
  app_.add_option_function<std::vector<std::string>>(
          name,
          [target](const std::vector<std::string>& marked) {
            for (const std::string& value : marked) {
              target->push_back(value.substr(1));
            }
          },
          description)
      ->required(need == Need::kRequired)
      ->type_name("");
  most_positionals_ = std::numeric_limits<size_t>::max();
}

void FlagSet::LastCounts(const std::string& name) {
  last_counts_.insert(Find(name));
}

void FlagSet::NotBuilt(const std::vector<std::string>& names) {
  not_built_.insert(names.begin(), names.end());
}

const CLI::Option* FlagSet::Find(std::string name) const {
  name = Canonical(name);
  const bool is_short = name.size() == 2 && name[1] != '-';
  const bool is_long = name.size() > 3 && name[1] == '-';
  return is_short || is_long ? app_.get_option_no_throw(name) : nullptr;
}

absl::Status FlagSet::Unknown(const std::string& name) const {
  if (not_built_.count(Canonical(name)) > 0) return NotInThisVersion(name);
  std::vector<std::string> known;
  for (const CLI::Option* option : app_.get_options()) {
    for (const std::string& long_name : option->get_lnames()) {
      known.push_back("--" + long_name);
    }
  }
  std::string hint = Suggestion(name, known);
  if (hint.empty()) {
    hint = absl::StrCat("; tiercel help ", command_, " lists those there are");
  }
  return UsageError(absl::StrCat(command_, ": unknown flag ", name, hint));
}

absl::Status FlagSet::Normalize(const std::vector<std::string>& args,
                                std::vector<std::string>* normalized) {
  std::vector<std::string> positionals;
  std::map<const CLI::Option*, size_t> seen;  // flag -> index of its value
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--") {
      positionals.insert(positionals.end(),
                         args.begin() + static_cast<std::ptrdiff_t>(i + 1),
                         args.end());
      break;
    }
    if (!LooksLikeFlag(args[i])) {
      positionals.push_back(args[i]);
      continue;
    }
    const size_t equals = args[i].find('=');
    const std::string name = args[i].substr(0, equals);
    std::optional<std::string> value;  // set if in one argument with the flag
    if (equals != std::string::npos) value = args[i].substr(equals + 1);
    const CLI::Option* option = Find(name);
    if (option == nullptr && name.size() > 2 && IsDigit(name[2])) {
      option = Find(name.substr(0, 2));  // "-n10"
      value = args[i].substr(2);
    }
    if (option == nullptr) return Unknown(name);
    const std::string names = AllNames(*option);
    if (option == app_.get_help_ptr() || option == app_.get_help_all_ptr()) {
      help_wanted_ =
          option == app_.get_help_ptr() ? HelpWanted::kShort : HelpWanted::kAll;
      return absl::OkStatus();
    }
    const bool again = seen.count(option) > 0;
    const bool replaces = again && last_counts_.count(option) > 0;
    if (again && !replaces && repeatable_.count(option) == 0) {
      return UsageError(absl::StrCat(names, ": given twice"));
    }
    if (!replaces) {
      normalized->push_back("--" + option->get_lnames().front());
      seen[option] = normalized->size();
    }
    if (option->get_items_expected_max() == 0) {
      if (value.has_value()) {
        return UsageError(absl::StrCat(names, ": takes no value"));
      }
      continue;
    }
    if (!value.has_value()) {
      if (i + 1 == args.size()) {
        return UsageError(absl::StrCat(names, ": its value is missing"));
      }
      value = args[++i];
      if (LooksLikeFlag(*value) &&
          Find(value->substr(0, value->find('='))) != nullptr) {
        return UsageError(absl::StrCat(
            names, ": its value is missing; the flag ", *value, " follows"));
      }
    }
    if (value->empty()) {
      return UsageError(absl::StrCat(names, ": its value is empty"));
    }
    if (replaces) {
      (*normalized)[seen[option]] = *std::move(value);
    } else {
      normalized->push_back(*std::move(value));
    }
  }

  if (positionals.size() > most_positionals_) {
    const std::string& stray = positionals[most_positionals_];
    const std::string& flag = access(stray.c_str(), F_OK) == 0 ? stray_.file
                              : ParseTokenCount(stray).has_value()
                                  ? stray_.number
                                  : stray_.text;
    return UsageError(absl::StrCat(
        command_, ": unexpected argument '", stray, "'",
        flag.empty()
            ? ""
            : absl::StrCat("; did you mean ", flag, " '", stray, "'?")));
  }
  if (!positionals.empty()) {
    normalized->push_back("--");
    for (const std::string& positional : positionals) {
      normalized->push_back(kWhole + positional);
    }
  }
  return absl::OkStatus();
}

HelpSection FlagSet::Section(const std::string& group) const {
  HelpSection section = {group, {}};
  for (const CLI::Option* option : app_.get_options()) {
    if (option->get_group() != group || option->get_positional()) continue;
    std::string name = AllNames(*option);
    if (option->get_items_expected_max() > 0) {
      absl::StrAppend(&name, " ", option->get_type_name());
    }
    section.rows.push_back({std::move(name), option->get_description()});
  }
  return section;
}

std::string FlagSet::Usage() const {
  std::string usage = app_.get_name() + " [FLAGS]";
  for (const CLI::Option* option : app_.get_options()) {
    if (!option->get_positional()) continue;
    const bool many = option->get_items_expected_max() > 1;
    absl::StrAppend(&usage, option->get_required() ? " " : " [",
                    option->get_single_name(), many ? "..." : "",
                    option->get_required() ? "" : "]");
  }
  return usage;
}

HelpSection FlagSet::Arguments() const {
  HelpSection arguments = {"Arguments", {}};
  for (const CLI::Option* option : app_.get_options()) {
    if (!option->get_positional()) continue;
    arguments.rows.push_back(
        {option->get_single_name(), option->get_description()});
  }
  return arguments;
}

namespace {

// The text before the first semicolon that is in no parentheses.
std::string FirstClause(const std::string& text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += (text[i] == '(') - (text[i] == ')');
    if (text[i] == ';' && depth == 0) return text.substr(0, i);
  }
  return text;
}

}  // namespace

std::string FlagSet::ShortHelp(const std::vector<std::string>& usual_flags,
                               const std::string& example) const {
  std::string page = absl::StrCat(FirstClause(app_.get_description()),
                                  "\nUsage: ", Usage(), "\n");
  HelpSection usual = {"Flags", {}};
  for (const std::string& name : usual_flags) {
    const CLI::Option* option = Find(name);
    std::string row = name;
    if (name[1] != '-') {
      absl::StrAppend(&row, ",--", option->get_lnames().front());
    }
    if (option->get_items_expected_max() > 0) {
      absl::StrAppend(&row, " ", option->get_type_name());
    }
    usual.rows.push_back({row, FirstClause(option->get_description())});
  }
  usual.rows.push_back({"--help-all", "all flags, and what else is heeded"});
  const HelpSection arguments = Arguments();
  if (!arguments.rows.empty()) absl::StrAppend(&page, HelpText(arguments));
  return absl::StrCat(page, HelpText(usual), "\nExample: ", example, "\n");
}

std::string FlagSet::Help(const std::vector<std::string>& examples) const {
  const HelpSection arguments = Arguments();
  std::string page =
      absl::StrCat(app_.get_description(), "\nUsage: ", Usage(), "\n");
  if (!arguments.rows.empty()) absl::StrAppend(&page, HelpText(arguments));
  for (const std::string& group : app_.get_groups()) {
    const HelpSection section = Section(group);
    if (!group.empty() && !section.rows.empty())
      absl::StrAppend(&page, HelpText(section));
  }
  if (Find("--set") != nullptr) {
    absl::StrAppend(&page, HelpText(SettingsHelp()));
  }
  absl::StrAppend(&page, HelpText(EnvironmentHelp()), "\nExamples:\n");
  for (const std::string& example : examples) {
    absl::StrAppend(&page, "  ", example, "\n");
  }
  return page;
}

absl::Status FlagSet::Parse(const std::vector<std::string>& args) {
  std::vector<std::string> normalized;
  RETURN_IF_ERROR(Normalize(args, &normalized));
  if (help_wanted_ != HelpWanted::kNone) return absl::OkStatus();
  std::reverse(normalized.begin(), normalized.end());  // as CLI11 wants them
  try {
    app_.parse(std::move(normalized));
  } catch (const CLI::RequiredError& error) {
    return UsageError(
        absl::StrCat(command_, ": ", error.what(), "; usage: ", Usage()));
  } catch (const CLI::ParseError& error) {
    return UsageError(absl::StrCat(command_, ": ", error.what()));
  }
  return absl::OkStatus();
}

}  // namespace tiercel::cli
