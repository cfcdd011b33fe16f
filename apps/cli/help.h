#ifndef TIERCEL_APPS_CLI_HELP_H_
#define TIERCEL_APPS_CLI_HELP_H_

#include <string>
#include <vector>

namespace tiercel::cli {

// A part of a help page: what it lists, each with what there is to say of it.
struct HelpSection {
  std::string title;
  struct Row {
    std::string name;
    std::string text;
  };
  std::vector<Row> rows;
};

// The section with its names in one column and their texts, broken between
// words, in a second; 80 columns wide, as far as the words allow.
std::string HelpText(const HelpSection& section);

// The variables that every command looks at.
const HelpSection& EnvironmentHelp();
// What --set knows, each with its default.
const HelpSection& SettingsHelp();

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_CLI_HELP_H_
