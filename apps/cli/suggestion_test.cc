#include "apps/cli/suggestion.h"

#include "gtest/gtest.h"

namespace tiercel::cli {
namespace {

TEST(SuggestionTest, TheNearestWord) {
  const std::vector<std::string> known = {"summarize", "tokenize", "plan",
                                          "detokenize"};
  const struct {
    const char* typed;
    const char* meant;
  } kCases[] = {{"summarise", "summarize"},  // changed
                {"sumarize", "summarize"},   // left out
                {"pplan", "plan"},           // put in
                {"plna", "plan"},            // swapped
                {"detokenise", "detokenize"},
                {"tokenise", "tokenize"},
                {"deto", "detokenize"}};  // begins with it
  for (const auto& [typed, meant] : kCases) {
    EXPECT_EQ(Suggestion(typed, known),
              std::string("; did you mean ") + meant + "?");
  }
}

TEST(SuggestionTest, WhatIsFarFromAllIsNone) {
  for (const char* typed :
       {"", "p", "det", "book", "pan-", "--bogus", "nalp"}) {
    EXPECT_EQ(Suggestion(typed, {"plan", "summarize", "detokenize"}), "")
        << typed;
  }
  EXPECT_EQ(Suggestion("plan", {}), "");
  EXPECT_EQ(Suggestion("--max-tokens", {"--tokens"}), "");
}

TEST(SuggestionTest, OfEqualsTheFirst) {
  EXPECT_EQ(Suggestion("--top-x", {"--top-k", "--top-p"}),
            "; did you mean --top-k?");
}

}  // namespace
}  // namespace tiercel::cli
