#ifndef TIERCEL_APPS_CLI_HELP_H_
#define TIERCEL_APPS_CLI_HELP_H_

#include <string>
#include <vector>

namespace tiercel::cli {

// A section of a help page: names, each with its explanation.
struct HelpSection {
  std::string title;
  struct Row {
    std::string name;
    std::string text;
  };
  std::vector<Row> rows;
};

// Lays out the section with its names in one column and their texts, broken
// between words, in a second; 80 columns wide unless a word is longer.
std::string HelpText(const HelpSection& section);

// The environment variables that every command reads.
const HelpSection& EnvironmentHelp();

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_CLI_HELP_H_
