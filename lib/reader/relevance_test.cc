#include "lib/reader/relevance.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tiercel::reader {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Gt;

TEST(RelevanceTest, IsBm25) {
  // One of three parts has the word, twice among its four words.
  const std::vector<double> relevance =
      RelevanceOf({"a whale, a Whale", "the sea here", "land"}, "whale?");
  const double weight = std::log(1 + 2.5 / 1.5);
  const double length = 4.0 * 3 / 8;
  const double expected = weight * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * length));
  EXPECT_THAT(relevance, ElementsAre(DoubleNear(expected, 1e-12), 0, 0));
}

TEST(RelevanceTest, RareWordsWeighMore) {
  const std::vector<double> relevance = RelevanceOf(
      {"the ship sailed", "the captain slept", "the ship sank", "the sea"},
      "the ship, the captain");
  EXPECT_GT(relevance[1], relevance[0]);
  EXPECT_GT(relevance[0], relevance[3]);
  EXPECT_GT(relevance[3], 0);
}

TEST(RelevanceTest, LengthIsWeighed) {
  const std::vector<double> relevance = RelevanceOf(
      {"a ship and much else beside it", "a ship", "no boat"}, "ship");
  EXPECT_GT(relevance[1], relevance[0]);
}

TEST(RelevanceTest, WordsAreAlikeBeyondTheirForms) {
  for (const char* word :
       {"QUEEQUEGS", "Queequeg's", "“queequeg”", "queequ_x"}) {
    EXPECT_THAT(RelevanceOf({word, "other"}, "Who is Queequeg?"),
                ElementsAre(Gt(0), 0))
        << word;
  }
  EXPECT_THAT(RelevanceOf({"que", "queequ"}, "queequeg"),
              ElementsAre(0, Gt(0)));
  // é, composed and decomposed.
  EXPECT_THAT(RelevanceOf({"CAFÉ", "cafe"}, "cafe\xCC\x81"),
              ElementsAre(Gt(0), 0));
  // A vowel sign stands within its word: किताब and कतब.
  EXPECT_THAT(RelevanceOf({"किताब", "कतब", "ताब"}, "किताब"),
              ElementsAre(Gt(0), 0, 0));
  EXPECT_THAT(RelevanceOf({"im Jahr 1851", "18"}, "1851"),
              ElementsAre(Gt(0), 0));
}

TEST(RelevanceTest, ScriptsWithoutSpaces) {
  EXPECT_THAT(
      RelevanceOf({"船长在哪里", "长船", "在船上", "船 long 长"}, "船长"),
      ElementsAre(Gt(0), 0, 0, 0));
}

TEST(RelevanceTest, NothingToGoBy) {
  EXPECT_THAT(RelevanceOf({"a", ""}, "?!"), ElementsAre(0, 0));
  EXPECT_THAT(RelevanceOf({"", ""}, "a"), ElementsAre(0, 0));
  EXPECT_THAT(RelevanceOf({}, "a"), ElementsAre());
}

TEST(RelevanceTest, AsManyAsFitAreRead) {
  const std::vector<double> relevance = {0, 3, 1, 2, 1};
  EXPECT_THAT(MostRelevant(relevance, {9, 9, 9, 9, 9}, 27),
              ElementsAre(1, 2, 3));
  EXPECT_THAT(MostRelevant(relevance, {9, 9, 9, 9, 9}, 26), ElementsAre(1, 3));
  EXPECT_THAT(MostRelevant(relevance, {5, 9, 9, 20, 9}, 18), ElementsAre(1, 2));
  EXPECT_THAT(MostRelevant(relevance, {5, 9, 9, 9, 9}, 5), ElementsAre(0));
  EXPECT_THAT(MostRelevant(relevance, {5, 9, 9, 9, 9}, 4), ElementsAre());
  EXPECT_THAT(MostRelevant(relevance, {5, 9, 9, 9, 9}, 100),
              ElementsAre(0, 1, 2, 3, 4));
}

}  // namespace
}  // namespace tiercel::reader
