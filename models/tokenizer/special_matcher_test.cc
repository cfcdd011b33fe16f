#include "models/tokenizer/special_matcher.h"

#include <gtest/gtest.h>

#include <random>

namespace tiercel {
namespace {

using Tokens = std::vector<std::pair<std::string, int32_t>>;

TEST(SpecialMatcherTest, LeftmostThenLongest) {
  const SpecialMatcher matcher(
      {{"<a>", 1}, {"<a><b>", 2}, {"a><b", 3}, {"<", 4}});
  const auto first = matcher.Find("x<a><b>", 0);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->begin, 1u);
  EXPECT_EQ(first->end, 7u);
  EXPECT_EQ(first->id, 2);
  const auto second = matcher.Find("x<a><b>", 2);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->begin, 2u);
  EXPECT_EQ(second->id, 3);
  EXPECT_EQ(matcher.Find("<a><c", 0)->id, 1);
  EXPECT_EQ(matcher.Find("<c", 0)->id, 4);
  EXPECT_FALSE(matcher.Find("abc", 0));
}

TEST(SpecialMatcherTest, EmptyTextsNeverMatch) {
  const SpecialMatcher matcher({{"", 0}, {"", 1}});
  EXPECT_FALSE(matcher.Find("abc", 0));
  EXPECT_FALSE(matcher.Find("", 0));
  EXPECT_FALSE(SpecialMatcher().Find("abc", 0));
}

TEST(SpecialMatcherTest, OfEqualTextsTheLeastIdCounts) {
  const SpecialMatcher matcher({{"ab", 7}, {"ab", 3}, {"a", 5}});
  EXPECT_EQ(matcher.Find("ab", 0)->id, 3);
  EXPECT_FALSE(matcher.Find("b", 0));
}

TEST(SpecialMatcherTest, EqualsThePlainDefinitionOnRandomTexts) {
  std::mt19937 random(4);
  const auto word = [&random](size_t most) {
    std::string text;
    for (size_t left = random() % (most + 1); left > 0; --left) {
      text.push_back("ab\xff"[random() % 3]);
    }
    return text;
  };
  for (int round = 0; round < 20000; ++round) {
    Tokens tokens;
    for (int32_t id = 0; id < 5; ++id) tokens.emplace_back(word(4), id);
    const SpecialMatcher matcher(tokens);
    const std::string text = word(10);
    std::optional<SpecialMatcher::Match> expected;
    for (size_t begin = 0; begin < text.size() && !expected; ++begin) {
      for (const auto& [token, id] : tokens) {
        if (token.empty() || text.compare(begin, token.size(), token) != 0) {
          continue;
        }
        if (!expected || begin + token.size() > expected->end) {
          expected = {begin, begin + token.size(), id};
        }
      }
    }
    const auto found = matcher.Find(text, 0);
    ASSERT_EQ(found.has_value(), expected.has_value());
    if (found) {
      ASSERT_EQ(found->begin, expected->begin);
      ASSERT_EQ(found->end, expected->end);
      ASSERT_EQ(found->id, expected->id);
    }
  }
}

}  // namespace
}  // namespace tiercel
