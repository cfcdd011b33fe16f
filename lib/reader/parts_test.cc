#include "lib/reader/parts.h"

#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/reader/book_for_test.h"

namespace tiercel::reader {
namespace {

using ::testing::ElementsAre;

size_t CountWords(std::string_view text) {
  size_t words = 0;
  bool in_word = false;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n';
    if (!blank && !in_word) ++words;
    in_word = !blank;
  }
  return words;
}

// Returns the parts of `text` with at most `most` words each, as texts.
std::vector<std::string> Cut(const std::string& text,
                             const Divisions& divisions, size_t most) {
  std::vector<std::string> parts;
  for (const Part& part : CutIntoParts(
           text, divisions, /*usual_bytes=*/0,
           [=](std::string_view run) { return CountWords(run) <= most; })) {
    parts.push_back(text.substr(part.begin, part.end - part.begin));
  }
  return parts;
}

Divisions DivisionsOf(const Document& book) {
  Divisions divisions;
  for (const Section& section : book.sections) {
    (section.level <= ChapterLevel(book) ? divisions.chapters
                                         : divisions.headings)
        .push_back(section.begin);
  }
  return divisions;
}

TEST(PartsTest, TheLongestRunOfChaptersThatFits) {
  const Document book = BookOf(
      "# 1|A\nb c d\n# 2|E\nf g h\n# 3|I\nj k l\n\nm n o p q r\n# 4|S\nt\n");
  EXPECT_THAT(Cut(book.text, DivisionsOf(book), 10),
              ElementsAre("A\n\nb c d\nE\n\nf g h\n",
                          "I\n\nj k l\n\nm n o p q r\n", "S\n\nt\n"));
}

TEST(PartsTest, HeadingsThenParagraphsThenSentencesThenWords) {
  const Document book = BookOf(
      "# 1|A\nb c\n## 1.1|D\ne f\n\ng h i\n# 2|J\n"
      "Kay. Ell em en. Oh pea. Queue ar es tee you vee doubleyou.\n");
  EXPECT_THAT(Cut(book.text, DivisionsOf(book), 5),
              ElementsAre("A\n\nb c\n", "D\n\ne f\n\n", "g h i\n", "J\n\n",
                          "Kay. Ell em en. ", "Oh pea. ",
                          "Queue ar es tee you ", "vee doubleyou.\n"));
}

TEST(PartsTest, ATitlePageGoesWithWhatFollows) {
  const Document book = BookOf("# |T\n# 1|A\n" + [] {
    std::string words;
    for (int i = 0; i < 40; ++i) words += "word\n\n";
    return words;
  }());
  const auto parts = Cut(book.text, DivisionsOf(book), 30);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(CountWords(parts[0]), 30u);
}

TEST(PartsTest, AHeadingGoesWithWhatOfItsParagraphFits) {
  std::string text = "Title\n\n";
  for (int i = 0; i < 100; ++i) text += "A sentence of five words. ";
  const auto parts = Cut(text, {{0}, {}}, 41);
  ASSERT_EQ(parts.size(), 13u);
  EXPECT_EQ(parts[0].substr(0, 9), "Title\n\nA ");
  EXPECT_EQ(CountWords(parts[0]), 41u);
}

TEST(PartsTest, NothingThatFitsIsNothing) {
  EXPECT_THAT(
      CutIntoParts("abc", {}, 1, [](std::string_view) { return false; }),
      ElementsAre());
  EXPECT_THAT(CutIntoParts("", {}, 1, [](std::string_view) { return true; }),
              ElementsAre());
}

TEST(PartsTest, CharactersStayWhole) {
  const std::string text = "aé漢𝄞b";
  std::vector<std::string> parts;
  for (const Part& part : CutIntoParts(
           text, {}, 1, [](std::string_view run) { return run.size() <= 4; })) {
    parts.push_back(text.substr(part.begin, part.end - part.begin));
  }
  EXPECT_THAT(parts, ElementsAre("aé", "漢", "𝄞", "b"));
}

// On random texts invariants 1 and 3 hold, and no part could end later.
TEST(PartsTest, PartsJoinFitAndAreAsLongAsTheyCanBe) {
  constexpr std::string_view kPieces[] = {"word ",  "Word. ",  "\n\n", "漢字。",
                                          "é ",     "a",       " ",    "\n",
                                          "Mr. X ", "\"No!\" "};
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    Divisions divisions;
    for (int i = 0; i < 120; ++i) {
      const size_t draw = random();
      text += kPieces[draw % 10];
      if (draw / 10 % 25 == 0) divisions.chapters.push_back(text.size());
      if (draw / 10 % 25 == 1) divisions.headings.push_back(text.size());
    }
    for (auto* begins : {&divisions.chapters, &divisions.headings}) {
      begins->erase(std::unique(begins->begin(), begins->end()), begins->end());
    }
    const size_t most = 4 + random() % 60;  // in bytes
    size_t asked = 0;
    const auto fits = [&](std::string_view run) {
      ++asked;
      return run.size() <= most;
    };
    const auto parts = CutIntoParts(text, divisions, random() % 99, fits);
    ASSERT_FALSE(parts.empty());
    EXPECT_LE(asked, 25 * parts.size());
    size_t at = 0;
    for (const Part& part : parts) {
      ASSERT_EQ(part.begin, at);
      ASSERT_GT(part.end, part.begin);
      ASSERT_LE(part.end - part.begin, most);
      at = part.end;
      if (part.end == text.size()) break;
      // No part passes over a chapter within its reach.
      for (const size_t chapter : divisions.chapters) {
        if (chapter <= part.begin + most && chapter > part.end) {
          ADD_FAILURE() << chapter << " was within reach of " << part.begin;
        }
      }
    }
    ASSERT_EQ(at, text.size());
  }
}

TEST(PartsTest, FewQuestionsAreAskedOfALongText) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += "One two three four five six.\n\n";
  size_t bytes = 0;
  const auto parts = CutIntoParts(text, {}, 100, [&](std::string_view run) {
    bytes += run.size();
    return run.size() <= 30000;
  });
  EXPECT_EQ(parts.size(), 20u);
  EXPECT_LT(bytes, 12 * text.size());
}

TEST(PartsTest, ABookWithoutAParagraphIsNotSearchedToItsEnd) {
  const std::string text(4 << 20, 'a');
  size_t bytes = 0;
  const auto parts = CutIntoParts(text, {}, 1000, [&](std::string_view run) {
    bytes += std::min<size_t>(run.size(), 5000);
    return run.size() <= 4000;
  });
  EXPECT_EQ(parts.size(), (text.size() + 3999) / 4000);
  EXPECT_LT(bytes, 40 * text.size());
}

std::vector<std::string> Sentences(const std::string& text) {
  std::vector<std::string> sentences;
  size_t at = 0;
  std::vector<size_t> begins = SentenceBegins(text);
  begins.push_back(text.size());
  for (const size_t begin : begins) {
    sentences.push_back(text.substr(at, begin - at));
    at = begin;
  }
  return sentences;
}

TEST(PartsTest, SentencesEndAsTheirLanguagesDo) {
  EXPECT_THAT(
      Sentences("Yes! \"Is it so?\" Mr. J. Smith said. He left... "
                "or not, e.g. today. 3.5 of it. End"),
      ElementsAre("Yes! ", "\"Is it so?\" ", "Mr. J. Smith said. ",
                  "He left... or not, e.g. today. ", "3.5 of it. ", "End"));
  EXPECT_THAT(Sentences("Was I? Or I. Then"),
              ElementsAre("Was I? ", "Or I. ", "Then"));
  EXPECT_THAT(Sentences("吾輩は猫である。名前は「まだ無い。」どこで！生れたか"),
              ElementsAre("吾輩は猫である。", "名前は「まだ無い。」",
                          "どこで！", "生れたか"));
  EXPECT_THAT(
      Sentences("«Oui.» Non. यह है। वह। ماذا؟ نعم"),
      ElementsAre("«Oui.» ", "Non. ", "यह है। ", "वह। ", "ماذا؟ ", "نعم"));
  EXPECT_THAT(Sentences("No end"), ElementsAre("No end"));
  EXPECT_THAT(Sentences("End. \n"), ElementsAre("End. \n"));
}

TEST(PartsTest, ParagraphsBeginBehindBlankLines) {
  EXPECT_THAT(ParagraphBegins("\n\na\nb\n \n\n c\n\n"), ElementsAre(9));
  EXPECT_THAT(ParagraphBegins(""), ElementsAre());
}

TEST(PartsTest, WhatIsCutEndsWithASentence) {
  const struct {
    const char* text;
    const char* whole;
  } kCases[] = {
      {"He came. He saw. He conq", "He came. He saw."},
      {"He came. He saw.", "He came. He saw."},
      {" He came.\nHe saw \n", "He came."},
      {"He came. \"He saw!\" said Mr. J. Smi", "He came."},
      {"He came. \"He saw!\" Then Mr. J. Smi", "He came. \"He saw!\""},
      {"He came, e.g. in", "He came, e.g. in"},
      {"He came and", "He came and"},
      {"", ""},
      {"It rose 3.5 times. In 19", "It rose 3.5 times."},
      {"吾輩は猫である。名前は「まだ無い。」どこで",
       "吾輩は猫である。名前は「まだ無い。」"},
      {"- one\n- two\n- three\n- fo", "- one\n- two\n- three"},
      // A heading is no sentence.
      {"Summary:\nhe came and saw and", "Summary:\nhe came and saw and"}};
  for (const auto& one : kCases) {
    EXPECT_EQ(WholeSentences(one.text), std::string_view(one.whole));
  }
}

}  // namespace
}  // namespace tiercel::reader
