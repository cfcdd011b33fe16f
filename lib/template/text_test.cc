#include "lib/template/text.h"

#include <random>
#include <utility>

#include "gtest/gtest.h"

namespace tiercel::jinja {
namespace {

// The simple model of Text: an origin for every byte.
using Marked = std::vector<std::pair<char, Origin>>;

Marked MarksOf(const Text& text) {
  Marked marks;
  text.ForEachRun([&marks](std::string_view rendering, Origin origin) {
    for (const char byte : rendering) marks.emplace_back(byte, origin);
  });
  return marks;
}

TEST(TextTest, RunsAreLongest) {
  Text text("a");
  text.Append("b", Origin::kTemplate);
  text.Append("c", Origin::kMessage);
  text.Append("", Origin::kTemplate);
  text.Append("d", Origin::kMessage);
  text.Append("e", Origin::kTemplate);
  std::string shown;
  text.ForEachRun([&shown](std::string_view rendering, Origin origin) {
    shown += origin == Origin::kMessage ? "<" : "[";
    shown += rendering;
  });
  EXPECT_EQ(shown, "[ab<cd[e");
  EXPECT_EQ(text.num_flips(), 2u);
}

TEST(TextTest, EveryByteKeepsItsOriginThroughCutsAndJoins) {
  std::mt19937 random(1);
  const auto below = [&random](size_t n) { return n == 0 ? 0 : random() % n; };
  Text text;
  Marked marks;
  for (int round = 0; round < 2000; ++round) {
    const size_t begin = below(text.size() + 1);
    const size_t end = begin + below(text.size() - begin + 1);
    switch (below(4)) {
      case 0: {
        const Origin origin =
            below(2) == 0 ? Origin::kTemplate : Origin::kMessage;
        const std::string bytes(below(4), static_cast<char>('a' + below(26)));
        text.Append(bytes, origin);
        for (const char byte : bytes) marks.emplace_back(byte, origin);
        break;
      }
      case 1: {  // append a part of the text to itself
        const Marked part(marks.begin() + static_cast<std::ptrdiff_t>(begin),
                          marks.begin() + static_cast<std::ptrdiff_t>(end));
        if (text.size() < 200) {
          text.Append(text, begin, end);
          marks.insert(marks.end(), part.begin(), part.end());
        }
        break;
      }
      case 2:
        text = text.Cut(begin, end);
        marks = Marked(marks.begin() + static_cast<std::ptrdiff_t>(begin),
                       marks.begin() + static_cast<std::ptrdiff_t>(end));
        break;
      default: {
        Text joined = text.Cut(begin, end);
        joined.Append(text);
        Marked joined_marks(marks.begin() + static_cast<std::ptrdiff_t>(begin),
                            marks.begin() + static_cast<std::ptrdiff_t>(end));
        joined_marks.insert(joined_marks.end(), marks.begin(), marks.end());
        if (joined.size() < 200) {
          text = joined;
          marks = joined_marks;
        }
      }
    }
    ASSERT_EQ(MarksOf(text), marks) << round;
    for (size_t i = 0; i < marks.size(); ++i) {
      ASSERT_EQ(text.OriginAt(i), marks[i].second) << round << " " << i;
    }
  }
}

TEST(TextTest, CharactersAreCodePoints) {
  EXPECT_EQ(CountCharacters(""), 0u);
  EXPECT_EQ(CountCharacters("aé日😀"), 4u);
  EXPECT_EQ(CharacterEnd("é!", 0), 2u);
  EXPECT_EQ(CharacterBegin("aé", 3), 1u);
  EXPECT_EQ(CountCharacters("\x80\x80"), 1u);  // no start: one character
  EXPECT_EQ(CharacterBegin("\x80\x80", 2), 0u);
}

TEST(TextTest, WhiteSpaceIsPythons) {
  for (const char* space :
       {" ", "\t", "\n", "\v", "\f", "\r", "\x1C", "\x1F", "\xC2\x85",
        "\xC2\xA0", "\xE1\x9A\x80", "\xE2\x80\x80", "\xE2\x80\x8A",
        "\xE2\x80\xA8", "\xE2\x80\xAF", "\xE2\x81\x9F", "\xE3\x80\x80"}) {
    EXPECT_TRUE(IsSpace(space)) << testing::PrintToString(space);
  }
  for (const char* other : {"a", "\x1B", "\x7F", "\xC2\xA1", "\xE2\x80\x8B",
                            "\xEF\xBB\xBF", "😀", ""}) {
    EXPECT_FALSE(IsSpace(other)) << testing::PrintToString(other);
  }
}

}  // namespace
}  // namespace tiercel::jinja
