#include "lib/reader/quotations.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tiercel::reader {
namespace {

using ::testing::ElementsAre;

std::vector<Quotation> FindQuotations(std::string_view answer,
                                      std::string_view book) {
  return QuotationFinder(book).Find(answer);
}

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
              ElementsAre("found cried 'Alice', and it"));
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
  EXPECT_THAT(Quotations("\"— cat … — cat\""), ElementsAre());
  EXPECT_THAT(Quotations("It's the Queen's own and the cat's too"),
              ElementsAre());
  EXPECT_THAT(Quotations("\"it was\n\nthe Queen's own\""), ElementsAre());
  // A short quotation hides none behind it.
  EXPECT_THAT(Quotations("\"Alice\" says \"it was the Queen’s own\""),
              ElementsAre("found it was the Queen’s own"));
}

TEST(QuotationsTest, AnEndMayBeTheAnswersOwn) {
  for (const char* end : {",", ".", "!", "?", ";", ":", " …", "...", " —", "?!",
                          ".’", ")", "。", " [...]", " ,"}) {
    EXPECT_THAT(
        Quotations("\"it was the Queen’s own cat" + std::string(end) +
                   "\" he said"),
        ElementsAre("found it was the Queen’s own cat" + std::string(end)));
  }
  EXPECT_THAT(Quotations("\"… it was the Queen’s own cat\""),
              ElementsAre("found … it was the Queen’s own cat"));
  EXPECT_THAT(Quotations("\"it was the Queens,\" he said"),
              ElementsAre("lost it was the Queens,"));
  EXPECT_THAT(Quotations("„名前はまだ無い！“"),
              ElementsAre("found 名前はまだ無い！"));
}

TEST(QuotationsTest, TheCaseOfTheFirstWordMayBeTheAnswersOwn) {
  EXPECT_THAT(Quotations("\"It was the Queen's.\" \"said: ‘Curiouser and "
                         "Curiouser\" \"Said: ‘Curiouser and curiouser\" "
                         "\"curiouser and curiouser!’ cried\" "
                         "\"she said: ‘Curiouser and\""),
              ElementsAre("found It was the Queen's.",
                          "lost said: ‘Curiouser and Curiouser",
                          "found Said: ‘Curiouser and curiouser",
                          "found curiouser and curiouser!’ cried",
                          "found she said: ‘Curiouser and"));
  EXPECT_EQ(FindQuotations("„Über die weiten Felder“",
                           "Er ging über die weiten Felder.")
                .at(0)
                .begin,
            8u);
  EXPECT_TRUE(
      FindQuotations("\"Alice was very tired\"", "ALICE was very tired of it.")
          .at(0)
          .found);
  // A place with the quotation's own case comes before one in another.
  EXPECT_EQ(FindQuotations("\"she was very tired\"",
                           "She was very tired. And she was very tired.")
                .at(0)
                .begin,
            24u);
}

TEST(QuotationsTest, TypesettingIsNoDifference) {
  constexpr std::string_view kPlain =
      "He went--not far--to a well-known, _very_ old cafe\u0301. \"Wait...\"";
  constexpr std::string_view kSet =
      "He\u00A0went\u2009— not far\u2009—\u2009to a well\u2011kno\u00ADwn, "
      "very "
      "old café. “Wait…”";
  for (const auto& [answer, book] :
       {std::pair(kPlain, kSet), std::pair(kSet, kPlain)}) {
    const auto quotations = FindQuotations(
        "«" + std::string(answer) + "»", "Then: " + std::string(book) + " End");
    ASSERT_EQ(quotations.size(), 1u);
    EXPECT_TRUE(quotations[0].found);
    EXPECT_EQ(quotations[0].begin, 6u);
    EXPECT_EQ(quotations[0].end, 6u + book.size());
  }
}

TEST(QuotationsTest, TheFirstRunThatHasTheWordsCounts) {
  const std::string book = "it was the cat; it was the Cat; it was the dog";
  QuotationFinder finder(book);
  const auto place = [&](std::string_view answer,
                         const std::vector<QuotationFinder::Run>& first) {
    return finder.Find(answer, first).at(0).begin;
  };
  EXPECT_EQ(place("\"it was the cat\"", {}), 0u);
  EXPECT_EQ(place("\"it was the dog\"", {{0, 14}}), 32u);
  EXPECT_EQ(place("\"And it was the\"", {{32, 46}}), 0u);
  EXPECT_EQ(place("\"it was the dog\"", {{32, 45}, {0, 46}}), 32u);
  const std::string again = "it was the cat, it was the cat, it was the cat";
  QuotationFinder other(again);
  EXPECT_EQ(other.Find("\"it was the cat\"", {{15, 31}}).at(0).begin, 16u);
  EXPECT_EQ(other.Find("\"it was the cat\"", {{17, 31}, {30, 46}}).at(0).begin,
            32u);
}

TEST(QuotationsTest, WordsAreWhole) {
  for (const char* answer : {"\"he can not go\"", "\"can not go ho\""}) {
    const auto quotations =
        FindQuotations(answer, "But she can not go home — he can not go there");
    EXPECT_EQ(quotations.at(0).found, answer[1] == 'h') << answer;
    EXPECT_EQ(quotations.at(0).begin, answer[1] == 'h' ? 28u : 0u);
  }
  EXPECT_THAT(Quotations("「は猫であ」"), ElementsAre("found は猫であ"));
  EXPECT_THAT(Quotations("\"and it was the Queen\""),
              ElementsAre("lost and it was the Queen"));
  EXPECT_TRUE(FindQuotations("«homme est né pour»", "L’homme est né pour elle.")
                  .at(0)
                  .found);
  // An accent belongs to its letter.
  EXPECT_FALSE(
      FindQuotations("«le roi est entre»", "Le roi est entré.").at(0).found);
  EXPECT_FALSE(FindQuotations("「吾輩は猫か」", "吾輩は猫が好き").at(0).found);
}

TEST(QuotationsTest, BytesThatAreNoTextAreNoTrouble) {
  EXPECT_THAT(Quotations("\xE2\x80"), ElementsAre());
  EXPECT_EQ(Quotations("\"a b c \xF0\x9F d\"").size(), 1u);
  EXPECT_TRUE(FindQuotations("\"a b c d\"", "\xE2\x80").size() == 1);
}

}  // namespace
}  // namespace tiercel::reader
