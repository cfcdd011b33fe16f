#ifndef TIERCEL_APPS_CLI_POLICIES_H_
#define TIERCEL_APPS_CLI_POLICIES_H_

#include <string>
#include <string_view>
#include <vector>

#include "apps/cli/help.h"

namespace tiercel::cli {

// A policy of the library, as tiercel_policies lists it.
struct PolicyInfo {
  std::string name;
  std::string help;
  bool has_plain = false;
  std::vector<std::string> plain_sizes;    // the sizes that this form heeds
  std::vector<HelpSection::Row> settings;  // "sfi: interval=64", and its text
};

// All policies, in the library's order; the first is the default.
const std::vector<PolicyInfo>& Policies();
// Null: there is no policy of that name.
const PolicyInfo* PolicyNamed(std::string_view name);

// Names as a usage line or a sentence has them; `last` comes before the last.
std::string AllPolicies(const char* separator);  // "full|triforce|..."
std::string PoliciesWithViews(const char* last);
std::string PlainPolicies(const char* last);
std::string PoliciesWithSettings(const char* last);
// "full (default): the whole text; triforce: ..."
std::string PoliciesHelp();

// The settings that --set takes, each with its default.
const HelpSection& SettingsHelp();

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_CLI_POLICIES_H_
