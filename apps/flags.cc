#include "apps/flags.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "apps/error.h"
#include "apps/numbers.h"

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

// Flags of the contract that no command has yet.
const std::set<std::string>& NotBuiltFlags() {
  static const std::set<std::string> kNames = {
      "--tensor-parallel",
      "--plain",
      "--book",
  };
  return kNames;
}

struct NotBuiltError : CLI::ValidationError {
  explicit NotBuiltError(const std::string& what)
      : CLI::ValidationError(what + " is not in this version") {}
};

absl::Status UsageError(std::string_view message) {
  return Error(Exit::kUsage, "usage", message);
}

bool LooksLikeFlag(const std::string& arg) {
  return arg.size() > 1 && arg[0] == '-' && arg != "--" &&
         !(arg[1] >= '0' && arg[1] <= '9');
}

// "-t,--threads" as it is shown: with llama.cpp's spelling where CLI11 must not
// know it.
std::string Shown(const std::string& names) {
  for (const auto& [one_dash, name] : OneDashNames()) {
    if (name == names) return absl::StrCat(one_dash, ",", name);
  }
  return names;
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

void FlagSet::RejectNotBuilt(const std::string& what) {
  throw NotBuiltError(what);
}

FlagSet::FlagSet(const std::string& command, const std::string& description)
    : command_(command), app_(description, "tiercel " + command) {
  app_.set_help_flag("-h,--help", "print this and exit");
}

void FlagSet::Text(const std::string& names, const std::string& value_name,
                   const std::string& description, Use use) {
  app_.add_option_function<std::string>(names, std::move(use), description)
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
  // One value a time: CLI11 would take all that follow, and "[a,b]" apart.
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

void FlagSet::Int(const std::string& names, const std::string& description,
                  int64_t low, int64_t high, std::function<void(int64_t)> use) {
  Text(names, "N", description,
       [names, low, high, use = std::move(use)](const std::string& value) {
         const std::optional<int64_t> number = ParseInt(value);
         if (!number.has_value() || *number < low || *number > high) {
           Reject(names,
                  RangeText("an integer", absl::StrCat(low), Low::kIncluded,
                            absl::StrCat(high)),
                  value);
         }
         use(*number);
       });
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
                   double low, Low low_end, double high, double* target) {
  Text(names, "X", description,
       [names, low, low_end, high, target](const std::string& value) {
         const std::optional<double> number = ParseReal(value);
         if (!number.has_value() || *number < low || *number > high ||
             (low_end == Low::kExcluded && *number == low)) {
           Reject(names,
                  RangeText("a number", absl::StrCat(low), low_end,
                            absl::StrCat(high)),
                  value);
         }
         *target = *number;
       });
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
          [name, target](const std::string& value) {
            if (value.empty()) Reject(name, "a value", value);
            *target = value;
          },
          description)
      ->required(need == Need::kRequired)
      ->type_name("");
  ++most_positionals_;
}

void FlagSet::Positionals(const std::string& name,
                          const std::string& description,
                          std::vector<std::string>* target) {
  app_.add_option(name, *target, description)->type_name("");
  most_positionals_ = std::numeric_limits<size_t>::max();
}

absl::Status FlagSet::Normalize(const std::vector<std::string>& args,
                                std::vector<std::string>* normalized) {
  std::vector<std::string> positionals;
  std::set<const CLI::Option*> seen;
  const auto find = [this](std::string name) -> const CLI::Option* {
    const auto one_dash = OneDashNames().find(name);
    if (one_dash != OneDashNames().end()) name = one_dash->second;
    const bool is_short = name.size() == 2 && name[1] != '-';
    const bool is_long = name.size() > 3 && name[1] == '-';
    return is_short || is_long ? app_.get_option_no_throw(name) : nullptr;
  };

  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--") {
      positionals.insert(positionals.end(), args.begin() + i + 1, args.end());
      break;
    }
    if (!LooksLikeFlag(args[i])) {
      positionals.push_back(args[i]);
      continue;
    }
    const size_t equals = args[i].find('=');
    const std::string name = args[i].substr(0, equals);
    const CLI::Option* option = find(name);
    if (option == nullptr) {
      const auto one_dash = OneDashNames().find(name);
      const bool known = NotBuiltFlags().count(
          one_dash == OneDashNames().end() ? name : one_dash->second);
      if (known) return NotInThisVersion(name);
      return UsageError(absl::StrCat(command_, ": unknown flag ", name));
    }
    const std::string names = AllNames(*option);
    if (option == app_.get_help_ptr()) {
      help_wanted_ = true;
      return absl::OkStatus();
    }
    if (!seen.insert(option).second && repeatable_.count(option) == 0) {
      return UsageError(absl::StrCat(names, ": given twice"));
    }
    normalized->push_back("--" + option->get_lnames().front());
    if (option->get_items_expected_max() == 0) {
      if (equals != std::string::npos) {
        return UsageError(absl::StrCat(names, ": takes no value"));
      }
      continue;
    }
    std::string value;
    if (equals != std::string::npos) {
      value = args[i].substr(equals + 1);
    } else if (i + 1 == args.size()) {
      return UsageError(absl::StrCat(names, ": its value is missing"));
    } else {
      value = args[++i];
      if (LooksLikeFlag(value) &&
          find(value.substr(0, value.find('='))) != nullptr) {
        return UsageError(absl::StrCat(
            names, ": its value is missing; the flag ", value, " follows"));
      }
    }
    if (value.empty()) {
      return UsageError(absl::StrCat(names, ": its value is empty"));
    }
    normalized->push_back(std::move(value));
  }

  if (positionals.size() > most_positionals_) {
    return UsageError(absl::StrCat(command_, ": unexpected argument '",
                                   positionals[most_positionals_], "'"));
  }
  if (!positionals.empty()) {
    normalized->push_back("--");
    std::move(positionals.begin(), positionals.end(),
              std::back_inserter(*normalized));
  }
  return absl::OkStatus();
}

absl::Status FlagSet::Parse(const std::vector<std::string>& args) {
  std::vector<std::string> normalized;
  if (absl::Status s = Normalize(args, &normalized); !s.ok()) return s;
  if (help_wanted_) return absl::OkStatus();
  std::reverse(normalized.begin(), normalized.end());  // as CLI11 wants them
  try {
    app_.parse(std::move(normalized));
  } catch (const NotBuiltError& error) {
    return Error(Exit::kUsage, "not_in_this_version", error.what());
  } catch (const CLI::ParseError& error) {
    return UsageError(absl::StrCat(command_, ": ", error.what()));
  }
  return absl::OkStatus();
}

}  // namespace tiercel::cli
