#include "lib/reader/quotations.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tiercel::reader {
namespace {

using ::testing::ElementsAre;

constexpr std::string_view kQuoted =
    "She said: ‘Curiouser  and\n  curiouser!’ cried “Alice”, and it was the "
    "Queen’s own cat.\n\nNext. 吾輩は猫である。名前はまだ無い。";

// Returns "found words" or "lost words" for each quotation.
std::vector<std::string> Quotations(std::string_view answer) {
  std::vector<std::string> quotations;
  for (const Quotation& one : FindQuotations(answer, kQuoted)) {
    quotations.push_back((one.found ? "found " : "lost ") + one.text);
  }
  return quotations;
}

TEST(QuotationsTest, BlanksAndMarksAreThoseOfNoKeyboard) {
  const auto found =
      FindQuotations("She says \"Curiouser and curiouser!' cried\".", kQuoted);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].found);
  EXPECT_EQ(kQuoted.substr(found[0].begin, found[0].end - found[0].begin),
            "Curiouser  and\n  curiouser!’ cried");
  EXPECT_THAT(Quotations("\"cried 'Alice', and it\""),
              ElementsAre("lost cried 'Alice', and it"));
  EXPECT_THAT(Quotations("“cried \"Alice\", and it”"),
              ElementsAre("found cried \"Alice\", and it"));
}

TEST(QuotationsTest, WhatTheBookHasNotIsNotFound) {
  EXPECT_THAT(Quotations("\"it was the King's own cat\" or "
                         "\"it was the Queen's own cat\""),
              ElementsAre("lost it was the King's own cat",
                          "found it was the Queen's own cat"));
}

TEST(QuotationsTest, MarksOfSeveralLanguages) {
  for (const char* quoted :
       {"“it was the Queen's”", "„it was the Queen's“", "„it was the Queen's”",
        "”it was the Queen's”", "«it was the Queen's»", "»it was the Queen's«",
        "‹it was the Queen's›", "「it was the Queen's」",
        "『it was the Queen's』", "‘it was the Queen's’",
        "‚it was the Queen's‘", "'it was the Queen's'",
        "« it was the Queen's »"}) {
    EXPECT_EQ(Quotations(std::string("He: ") + quoted + ", no?").size(), 1u)
        << quoted;
    EXPECT_EQ(Quotations(quoted)[0].substr(0, 5), "found") << quoted;
  }
  EXPECT_THAT(Quotations("「吾輩は猫である。」"),
              ElementsAre("found 吾輩は猫である。"));
}

TEST(QuotationsTest, ThreeWordsOrAnApostropheAreNone) {
  EXPECT_THAT(Quotations("\"own cat Next\" \"\" \"cat"), ElementsAre());
  EXPECT_THAT(Quotations("It's the Queen's own and the cat's too"),
              ElementsAre());
  EXPECT_THAT(Quotations("\"it was\n\nthe Queen's own\""), ElementsAre());
  // A short quotation hides none behind it.
  EXPECT_THAT(Quotations("\"Alice\" says \"it was the Queen’s own\""),
              ElementsAre("found it was the Queen’s own"));
}

TEST(QuotationsTest, AnEndMayBeTheAnswersOwn) {
  EXPECT_THAT(Quotations("\"it was the Queen's,\" he said"),
              ElementsAre("found it was the Queen's,"));
  EXPECT_THAT(Quotations("\"it was the Queens,\" he said"),
              ElementsAre("lost it was the Queens,"));
}

TEST(QuotationsTest, ACapitalMayBeTheAnswersOwn) {
  EXPECT_THAT(Quotations("\"It was the Queen's.\" \"said: ‘Curiouser and "
                         "Curiouser\" \"Said: ‘Curiouser and curiouser\""),
              ElementsAre("found It was the Queen's.",
                          "lost said: ‘Curiouser and Curiouser",
                          "found Said: ‘Curiouser and curiouser"));
  EXPECT_EQ(FindQuotations("„Über die weiten Felder“",
                           "Er ging über die weiten Felder.")
                .at(0)
                .begin,
            8u);
}

TEST(QuotationsTest, WordsAreWhole) {
  for (const char* answer : {"\"he can not go\"", "\"can not go ho\""}) {
    const auto quotations =
        FindQuotations(answer, "But she can not go home — he can not go there");
    EXPECT_EQ(quotations.at(0).found, answer[1] == 'h') << answer;
    EXPECT_EQ(quotations.at(0).begin, answer[1] == 'h' ? 28u : 0u);
  }
  EXPECT_THAT(Quotations("「は猫であ」"), ElementsAre("found は猫であ"));
}

TEST(QuotationsTest, BytesThatAreNoTextAreNoTrouble) {
  EXPECT_THAT(Quotations("\xE2\x80"), ElementsAre());
  EXPECT_EQ(Quotations("\"a b c \xF0\x9F d\"").size(), 1u);
  EXPECT_TRUE(FindQuotations("\"a b c d\"", "\xE2\x80").size() == 1);
}

}  // namespace
}  // namespace tiercel::reader
