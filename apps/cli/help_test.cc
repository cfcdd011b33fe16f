#include "apps/cli/help.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "apps/cli/args_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tiercel::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(HelpTest, TextsAreBrokenBetweenWords) {
  EXPECT_EQ(
      HelpText({"Words",
                {{"-s", "short"},
                 {"--so-long-that-no-text-follows", "a text"},
                 {"--two-lines N",
                  "more than the fifty-four characters that are left of one "
                  "line"}}}),
      "\nWords:\n"
      "  -s                      short\n"
      "  --so-long-that-no-text-follows\n"
      "                          a text\n"
      "  --two-lines N           more than the fifty-four characters that are "
      "left of\n"
      "                          one line\n");
}

TEST_F(ArgsTest, HelpAndVersionPrint) {
  for (const Args& args : std::vector<Args>{{"--help"},
                                            {"-h"},
                                            {"--version"},
                                            {"help"},
                                            {"help", "help"},
                                            {"help", "generate"},
                                            {"generate", "--help"},
                                            {"--help-all"},
                                            {"bench", "-p", "1", "-h"}}) {
    const absl::StatusOr<CommandLine> line = ParseArgs(args);
    ASSERT_TRUE(line.ok()) << line.status();
    EXPECT_FALSE(line->print.empty());
  }
}

std::string Page(const Args& args) {
  const absl::StatusOr<CommandLine> line = ParseArgs(args);
  EXPECT_TRUE(line.ok()) << line.status();
  return line.ok() ? line->print : "";
}

TEST_F(ArgsTest, HelpPromisesNoMoreThanTheContextHolds) {
  for (const Args& args :
       std::vector<Args>{{"help"}, {"help", "summarize"}, {"help", "ask"}}) {
    const std::string page = Page(args);
    EXPECT_THAT(page.substr(0, page.find("\nUsage")), HasSubstr("context"));
  }
  EXPECT_THAT(Page({"help", "summarize"}), HasSubstr("in parts where"));
  EXPECT_THAT(Page({"help", "ask"}), HasSubstr("in parts"));
  EXPECT_THAT(Page({"help", "chat"}), Not(HasSubstr("in parts")));
}

const char* const kAllCommands[] = {
    "summarize", "ask",  "chat",  "generate", "eval", "tokenize", "detokenize",
    "inspect",   "plan", "bench", "cache",    "text", "serve",    "batch"};

TEST_F(ArgsTest, HelpIsOneForAllWaysToAskForIt) {
  EXPECT_EQ(Page({"help"}), Page({"--help"}));
  for (const char* command : kAllCommands) {
    const std::string page = Page({command, "--help-all"});
    EXPECT_EQ(Page({"help", command}), Page({command, "--help"}));
    EXPECT_EQ(Page({"help", command, "--help-all"}), page);
    EXPECT_THAT(Page({"help"}), HasSubstr(command));
    for (const char* part :
         {"\nUsage: tiercel ", "\nOutput:\n", "\nEnvironment:\n",
          "TIERCEL_MODEL", "\nExamples:\n  "}) {
      EXPECT_THAT(page, HasSubstr(part)) << command;
    }
    // Each line fits a narrow terminal.
    for (absl::string_view text : absl::StrSplit(page, '\n')) {
      EXPECT_LE(text.size(), 100u) << text;
    }
  }
  EXPECT_THAT(Page({"generate", "--help-all"}),
              HasSubstr("\n  sfi: evidence=16  "));
  EXPECT_THAT(Page({"tokenize", "--help-all"}), Not(HasSubstr("evidence")));
  EXPECT_THAT(Page({"--help-all"}), HasSubstr("TIERCEL_NCCL"));
  EXPECT_EQ(Page({"help", "--help"}), Page({"help"}));
  EXPECT_EQ(Page({"help", "--help-all"}), Page({"--help-all"}));
  EXPECT_EQ(Page({"help", "version"}), Page({"help"}));
  EXPECT_EQ(Page({"version"}), Page({"--version"}));
  EXPECT_EQ(Page({"-V"}), Page({"--version"}));
  EXPECT_THAT(Page({"help", "ask"}),
              HasSubstr("Usage: tiercel ask [FLAGS] FILE [QUESTION...]\n"));
  EXPECT_THAT(Page({"generate", "--help-all"}),
              HasSubstr("\n  -ctk,--cache-type-k"));
}

TEST_F(ArgsTest, HelpFitsAScreen) {
  std::vector<std::string> pages = {Page({"help"})};
  for (const char* command : kAllCommands) {
    pages.push_back(Page({"help", command}));
    EXPECT_THAT(pages.back(), HasSubstr("\n  --help-all"));
    EXPECT_THAT(pages.back(), HasSubstr("\nExample: tiercel "));
  }
  for (const std::string& page : pages) {
    // The page leaves a line for the shell's prompt.
    EXPECT_LT(std::count(page.begin(), page.end(), '\n'), 24) << page;
    for (absl::string_view text : absl::StrSplit(page, '\n')) {
      EXPECT_LE(text.size(), 80u) << text;
    }
    // No clause is cut in two.
    EXPECT_EQ(std::count(page.begin(), page.end(), '('),
              std::count(page.begin(), page.end(), ')'))
        << page;
  }
}

// Returns the page as one line.
std::string Unwrapped(const std::string& page) {
  return absl::StrJoin(
      absl::StrSplit(page, absl::ByAnyChar(" \n"), absl::SkipEmpty()), " ");
}

TEST_F(ArgsTest, HelpSaysWhoDraftsWhereNobodyIsNamed) {
  std::string with_text;
  for (const char* policy : {"triforce", "sfi", "sadas", "speed"}) {
    EXPECT_STREQ(Parse({"plan", "--policy", policy}).sampling.Drafter(),
                 "ngram");
    absl::StrAppend(&with_text, with_text.empty() ? "" : ", ", policy);
  }
  EXPECT_STREQ(Parse({"plan"}).sampling.Drafter(), "none");
  EXPECT_THAT(Unwrapped(Page({"plan", "--help-all"})),
              HasSubstr(absl::StrCat("nobody (default with full), the text "
                                     "itself where it repeats (default with ",
                                     with_text, ")")));
}

}  // namespace
}  // namespace tiercel::cli
