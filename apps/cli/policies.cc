#include "apps/cli/policies.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "include/tiercel.hpp"

namespace tiercel::cli {
namespace {

std::vector<PolicyInfo> ReadPolicies() {
  std::vector<PolicyInfo> all;
  for (const auto& one : nlohmann::json::parse(policies())) {
    PolicyInfo& policy = all.emplace_back();
    policy.name = one.at("name").get<std::string>();
    policy.help = one.at("help").get<std::string>();
    policy.has_plain = one.at("plain").get<bool>();
    policy.plain_sizes = one.at("plain_sizes").get<std::vector<std::string>>();
    for (const auto& setting : one.at("settings")) {
      policy.settings.push_back(
          {absl::StrCat(policy.name, ": ", setting.at("key").get<std::string>(),
                        "=", setting.at("default").get<std::string>()),
           setting.at("help").get<std::string>()});
    }
  }
  return all;
}

// "a, b" + last + "c"
std::string Joined(const std::vector<std::string>& names, const char* last) {
  if (names.size() < 2) return absl::StrJoin(names, "");
  return absl::StrCat(absl::StrJoin(names.begin(), names.end() - 1, ", "), last,
                      names.back());
}

// The names of the policies of which `is` is true.
template <typename Is>
std::string NamesIf(Is is, const char* last) {
  std::vector<std::string> names;
  for (const PolicyInfo& policy : Policies()) {
    if (is(policy)) names.push_back(policy.name);
  }
  return Joined(names, last);
}

}  // namespace

const std::vector<PolicyInfo>& Policies() {
  static const std::vector<PolicyInfo> kPolicies = ReadPolicies();
  return kPolicies;
}

const PolicyInfo* PolicyNamed(std::string_view name) {
  const auto& all = Policies();
  const auto found = std::find_if(
      all.begin(), all.end(),
      [&](const PolicyInfo& policy) { return policy.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::string AllPolicies(const char* separator) {
  return absl::StrJoin(Policies(), separator,
                       [](std::string* out, const PolicyInfo& policy) {
                         absl::StrAppend(out, policy.name);
                       });
}

std::string PoliciesWithViews(const char* last) {
  std::vector<std::string> names;
  for (const PolicyInfo& policy : Policies()) names.push_back(policy.name);
  if (!names.empty()) names.erase(names.begin());  // full has none
  return Joined(names, last);
}

std::string PoliciesHelp() {
  std::string help;
  for (const PolicyInfo& policy : Policies()) {
    absl::StrAppend(&help, help.empty() ? "" : "; ", policy.name,
                    help.empty() ? " (default): " : ": ", policy.help);
  }
  return help;
}

std::string PlainPolicies(const char* last) {
  return NamesIf([](const PolicyInfo& policy) { return policy.has_plain; },
                 last);
}

std::string PoliciesWithSettings(const char* last) {
  return NamesIf(
      [](const PolicyInfo& policy) { return !policy.settings.empty(); }, last);
}

const HelpSection& SettingsHelp() {
  static const HelpSection kSection = [] {
    HelpSection section = {"What --set knows, and the defaults", {}};
    for (const PolicyInfo& policy : Policies()) {
      section.rows.insert(section.rows.end(), policy.settings.begin(),
                          policy.settings.end());
    }
    return section;
  }();
  return kSection;
}

}  // namespace tiercel::cli
