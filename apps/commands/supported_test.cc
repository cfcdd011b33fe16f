#include "apps/commands/supported.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"

namespace tiercel::cli {
namespace {

// A sentence, and the gain of each of its words.
struct Said {
  std::string_view text;
  double gain;
};

// Returns the sentences that are kept. Each word is a token, with the blank
// before it.
std::string Kept(const std::vector<Said>& said) {
  std::string summary;
  std::vector<size_t> ends;
  std::vector<double> gains;
  for (const Said& sentence : said) {
    for (const char c : sentence.text) {
      if ((c == ' ' || c == '\n') && !summary.empty()) {
        if (ends.empty() || ends.back() < summary.size()) {
          ends.push_back(summary.size());
          gains.push_back(sentence.gain);
        }
      }
      summary += c;
    }
    ends.push_back(summary.size());
    gains.push_back(sentence.gain);
  }
  return SupportedSentences(summary, ends, gains);
}

constexpr Said kOwn = {"Ian Murdock founded Debian in 1993.", 3};
constexpr Said kAny = {" The text highlights how important it is.", 0.4};
constexpr Said kMore = {" Its name comes from his and Debra's.", 2};

TEST(SupportedTest, WhatTheTextMakesLikelierStays) {
  EXPECT_EQ(Kept({kOwn, kAny, kMore}),
            "Ian Murdock founded Debian in 1993. Its name comes from his and "
            "Debra's.");
  EXPECT_EQ(Kept({kAny, kMore}), std::string(kMore.text.substr(1)));
}

TEST(SupportedTest, ThreeAreEnough) {
  EXPECT_EQ(Kept({{"This is the first of five. ", 2},
                  {"This is the second of five. ", 2},
                  {"This is the third of five. ", 2},
                  {"This is the fourth of five. ", 9},
                  {"This is the fifth of five.", 2}}),
            "This is the first of five. This is the second of five. This is "
            "the third of five.");
}

TEST(SupportedTest, WhereNothingIsSupportedTheBestStays) {
  EXPECT_EQ(Kept({kAny, {" It is a great example of care.", 0.9}}),
            "It is a great example of care.");
}

TEST(SupportedTest, QuestionsHeadingsAndHalfSentencesAreLeftOut) {
  EXPECT_EQ(
      Kept({{"1.1. In the Beginning of all this\n\n", 5},
            kOwn,
            {" How does Debian support diversity today?", 5},
            {" 11.2. ", 5},
            {" It also has all the rights of 4.", 5},
            {" Free Redistribution 2. Source Code 3. Derived Works 4. ", 5},
            {"And then the project had begun to", 5}}),
      std::string(kOwn.text));
  EXPECT_EQ(Kept({kOwn, {" \"Debian shall remain free for ever.\"", 4}}),
            std::string(kOwn.text) + " \"Debian shall remain free for ever.\"");
  // Half a sentence is better than none.
  EXPECT_EQ(Kept({{"And then the project had begun to", 5}}),
            "And then the project had begun to");
  EXPECT_EQ(Kept({}), "");
}

TEST(SupportedTest, LinesAreJoined) {
  EXPECT_EQ(Kept({{"Ian Murdock founded\nDebian in\n1993.", 3}}),
            "Ian Murdock founded Debian in 1993.");
}

// The gain of a sentence is the mean over its own tokens.
TEST(SupportedTest, AGainIsOfTheTokensOfTheSentence) {
  const std::string text = "One two three four five. Six seven eight nine ten.";
  const size_t middle = text.find(" Six");
  std::vector<size_t> ends;
  std::vector<double> gains;
  for (size_t at = 4; at <= text.size(); at += 2) {
    ends.push_back(at);
    gains.push_back(at <= middle ? 1.4 : 1.6);
  }
  EXPECT_EQ(SupportedSentences(text, ends, gains), "Six seven eight nine ten.");
  for (double& gain : gains) gain = 3 - gain;
  EXPECT_EQ(SupportedSentences(text, ends, gains), "One two three four five.");
}

// A token that ends with the blank behind a sentence belongs to that sentence.
TEST(SupportedTest, ATokenMayEndWhereTheNextSentenceBegins) {
  const std::string text =
      "One two three four five six. Seven eight nine ten eleven.";
  const std::vector<size_t> ends = {4, 8, 14, 19, 24, 29, 35, 41, 46, 50, 57};
  const std::vector<double> gains = {2, 2, 2, 2, 2, -4, 2, 2, 2, 2, 2};
  EXPECT_EQ(SupportedSentences(text, ends, gains),
            "Seven eight nine ten eleven.");
}

}  // namespace
}  // namespace tiercel::cli
