#include "lib/documents/pdf_geometry.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/documents/pdf_layout.h"

namespace tiercel::document {
namespace {

using ::testing::ElementsAre;

// A page of words in boxes of 10 by 10 points, 20 apart: along a line and from
// line to line.
struct Step {
  float across;
  float down;
};
PdfPage PageOfWords(const std::vector<std::vector<std::string>>& lines,
                    Step word_step, Step line_step) {
  PdfPage page = {400, 400, {{{100, 100, 110, 110}, 110, {}}}};
  for (size_t l = 0; l < lines.size(); ++l) {
    PdfLine line;
    for (size_t w = 0; w < lines[l].size(); ++w) {
      const auto along = static_cast<float>(w);
      const auto across = static_cast<float>(l);
      const float left =
          200 + along * word_step.across + across * line_step.across;
      const float top = 200 + along * word_step.down + across * line_step.down;
      line.words.push_back({{left, top, left + 10, top + 10}, lines[l][w]});
    }
    line.box = line.words.front().box;
    for (const PdfWord& word : line.words) {
      line.box = {std::min(line.box.left, word.box.left),
                  std::min(line.box.top, word.box.top),
                  std::max(line.box.right, word.box.right),
                  std::max(line.box.bottom, word.box.bottom)};
    }
    page.blocks[0].lines.push_back(line);
  }
  return page;
}

std::vector<std::string> Straightened(PdfPage page) {
  std::vector<PdfPage> pages = {std::move(page)};
  StraightenPages(&pages);
  std::vector<std::string> lines;
  float top = -1;
  for (const PdfBlock& block : pages[0].blocks) {
    for (const PdfLine& line : block.lines) {
      EXPECT_GT(line.box.top, top);
      top = line.box.top;
      std::string text;
      float right = -1;
      for (const PdfWord& word : line.words) {
        EXPECT_GT(word.box.left, right) << word.text;
        right = word.box.right;
        text += (text.empty() ? "" : " ") + word.text;
      }
      lines.push_back(text);
    }
  }
  return lines;
}

TEST(PdfGeometryTest, TurnedPagesAreTurnedBack) {
  const std::vector<std::vector<std::string>> words = {{"a", "b", "c"},
                                                       {"d", "e", "f"}};
  for (const auto& [word, line] : {std::pair<Step, Step>{{20, 0}, {0, 20}},
                                   {{0, 20}, {-20, 0}},
                                   {{-20, 0}, {0, -20}},
                                   {{0, -20}, {20, 0}}}) {
    EXPECT_THAT(Straightened(PageOfWords(words, word, line)),
                ElementsAre("a b c", "d e f"));
  }
}

// The places of letters are from left to right; a number and words of other
// scripts are read so, too.
TEST(PdfGeometryTest, LinesFromRightToLeftGetTheOrderOfReading) {
  EXPECT_THAT(
      Straightened(PageOfWords(
          {{".ריעב", "0991", "Big", "Ben", "(קרפ)"}, {"םולש", "ב1,990ג"}},
          {20, 0}, {0, 20})),
      ElementsAre("(פרק) 0991 Big Ben בעיר.", "ג1,990ב שלום"));
  // A Hebrew word in an English line stays at its place.
  EXPECT_THAT(
      Straightened(PageOfWords({{"the", "word", "םולש", "means", "peace"}},
                               {20, 0}, {0, 20})),
      ElementsAre("the word שלום means peace"));
  // A number keeps its signs.
  EXPECT_THAT(Straightened(PageOfWords({{"12.5%", ",$30", "50%-ב", "ריעב"}},
                                       {20, 0}, {0, 20})),
              ElementsAre("בעיר ב-50% $30, 12.5%"));
  // Several go from right to left there, and their brackets around them.
  EXPECT_THAT(Straightened(PageOfWords(
                  {{"see", "the", "(תנשב", "-", "תיבה)", "and", "it", "all"}},
                  {20, 0}, {0, 20})),
              ElementsAre("see the (הבית - בשנת) and it all"));
  // A line of it on a page of others is read from its right. Its brackets may
  // be given as they are meant, and not as they look.
  const std::vector<std::string> english = {"a",       "page",  "of",
                                            "English", "words", "here"};
  EXPECT_THAT(
      Straightened(PageOfWords(
          {english, {".ריעב", "Windows", "95", ",)1990", "תנשב(", "תיבה"}},
          {20, 0}, {0, 20})),
      ElementsAre("a page of English words here",
                  "הבית (בשנת 1990), Windows 95 בעיר."));
  // Arabic letters in their printed forms.
  EXPECT_THAT(
      Straightened(PageOfWords({{"\uFEAE\uFEE4\uFED7"}}, {20, 0}, {0, 20})),
      ElementsAre("\u0642\u0645\u0631"));
}

// Words of other scripts have their marks behind them.
TEST(PdfGeometryTest, AMarkOfTheSentenceFollowsARunOfOtherWords) {
  EXPECT_THAT(Straightened(PageOfWords({{"םולש", ",Big", "Ben", "(קרפ)"}},
                                       {20, 0}, {0, 20})),
              ElementsAre("(פרק) Big Ben, שלום"));
}

// A program may give lam and alef, which are one sign, in the order in which
// they are read: "al-awwal" and "wa-la" come as L-W-[L-A]-A and [L-A]-W.
TEST(PdfGeometryTest, LamComesBeforeAlefInTheirSign) {
  const std::string first_given = "\u0644\u0648\u0644\u0623\u0627";
  const std::string first_read = "\u0627\u0644\u0623\u0648\u0644";
  const std::string and_no_given = "\u0644\u0627\u0648";
  const std::string and_no_read = "\u0648\u0644\u0627";
  const std::string article_given = "\u0631\u0647\u0646\u0644\u0627";
  const std::string article_read = "\u0627\u0644\u0646\u0647\u0631";
  EXPECT_THAT(
      Straightened(PageOfWords({{and_no_given, article_given, first_given}},
                               {20, 0}, {0, 20})),
      ElementsAre(first_read + " " + article_read + " " + and_no_read));
  // No word shows that they are not reversed as all others.
  EXPECT_THAT(Straightened(PageOfWords({{"\u0627\u0644\u0648", article_given}},
                                       {20, 0}, {0, 20})),
              ElementsAre(article_read + " " + and_no_read));
  // "Mind" has the letters of "without" in another order.
  EXPECT_THAT(Straightened(PageOfWords({{"\u0644\u0627\u0628", article_given}},
                                       {20, 0}, {0, 20})),
              ElementsAre(article_read + " \u0628\u0627\u0644"));
}

// Small syllables above a word are its reading, and part no sentence.
TEST(PdfGeometryTest, ReadingsAboveWordsAreLeftOut) {
  const auto block = [](const std::string& text, float left, float top,
                        float height) {
    const PdfBox box = {left, top, left + 50, top + height};
    return PdfBlock{box, 0, {PdfLine{box, {PdfWord{box, text}}}}};
  };
  PdfPage page = {200, 200, {}};
  page.blocks = {block("川は古い水車の", 30, 20, 10),
                 block("すいしゃ", 60, 34, 5),
                 block("そばを流れた。", 20, 38, 10), block("水車", 20, 56, 10),
                 block("すいしゃ", 150, 69, 5)};
  std::vector<PdfPage> pages = {page};
  StraightenPages(&pages);
  ASSERT_EQ(pages[0].blocks.size(), 2u);
  ASSERT_EQ(pages[0].blocks[0].lines.size(), 3u);
  EXPECT_EQ(pages[0].blocks[0].lines[1].words[0].text, "そばを流れた。");
  // Nothing stands below this one.
  EXPECT_EQ(pages[0].blocks[1].lines[0].words[0].text, "すいしゃ");
}

}  // namespace
}  // namespace tiercel::document
