#include "lib/documents/numbered_headings.h"

#include <string>

#include "gtest/gtest.h"
#include "lib/documents/plain_text_for_test.h"

namespace tiercel::document {
namespace {

const char* const kChapters[] = {"CHAPTER I", "CHAPTER II", "CHAPTER III",
                                 "CHAPTER IV"};

// The chapters, each with four pages that end in what `foot` returns for the
// chapter's name and the page's number.
template <typename Foot>
std::string Pages(Foot foot, bool has_names = true) {
  std::string text;
  int page = 0;
  for (const char* chapter : kChapters) {
    if (has_names) text += "\n" + std::string(chapter) + "\n";
    for (int i = 0; i < 4; ++i)
      text += Prose(20) + foot(chapter, ++page) + "\n";
  }
  return text + Prose();
}

const char* const kTree =
    "1 CHAPTER I|\n1 CHAPTER II|\n1 CHAPTER III|\n1 CHAPTER IV|\n";

std::string Number(const std::string&, int page) {
  return std::to_string(page);
}

TEST(NumberedHeadingsTest, NumbersOfPagesAreNoChapters) {
  EXPECT_EQ(Tree(Pages(Number)), kTree);
  EXPECT_EQ(
      Tree("Contents\n\nCHAPTER I\nCHAPTER II\nCHAPTER III\nCHAPTER IV\n\n" +
           Pages(Number)),
      kTree);
  EXPECT_EQ(Tree(Pages(Number, /*has_names=*/false)), "");
  // Paragraphs may be numbered, too, and be of any length.
  const auto paragraph = [](const std::string&, int number) {
    return Prose(number % 3 == 0 ? 40 : 4) + std::to_string(number) + "\n";
  };
  EXPECT_EQ(Tree(Pages(paragraph)), kTree);
  // A few pages of any length, with sentences that go on over their ends.
  std::string text;
  for (int i = 1; i <= 4; ++i) {
    text += Prose(6 + i * i) + "and so it was that they came to the old\n\n" +
            std::to_string(i) + "\n\nmill by the river.\n";
  }
  EXPECT_EQ(Tree(text), "");
}

TEST(NumberedHeadingsTest, NumbersOfPoemsAreHeadings) {
  std::string text;
  for (int i = 1; i <= 12; ++i) text += std::to_string(i) + "\n" + Prose();
  EXPECT_EQ(ReadAsText(text).sections.size(), 12u);
}

TEST(NumberedHeadingsTest, RunningHeadsAreNoChapters) {
  const auto same = [](const std::string& chapter, int) { return chapter; };
  EXPECT_EQ(Tree(Pages(same)), kTree);
  const auto numbered = [](const std::string& chapter, int page) {
    const std::string number = std::to_string(page);
    return page % 2 == 0 ? chapter + "    " + number
                         : number + "    " + chapter;
  };
  EXPECT_EQ(Tree(Pages(numbered)), kTree);
}

TEST(NumberedHeadingsTest, AChapterOfTheSameNumberMayFollow) {
  // A book of one chapter stands between others.
  EXPECT_EQ(Tree("Chapter 1\n" + Prose() + "Chapter 2\n" + Prose() +
                 "OBADIAH\n\nChapter 1\n" + Prose() + "JONAH\n\nChapter 1\n" +
                 Prose() + "Chapter 2\n" + Prose()),
            "1 Chapter 1|\n1 Chapter 2|\n1 Chapter 1|\n1 Chapter 1|\n"
            "1 Chapter 2|\n");
  EXPECT_EQ(Tree("BOOK ONE: 1805\n" + Prose() + "BOOK TWO: 1805\n" + Prose()),
            "1 BOOK ONE|1805\n1 BOOK TWO|1805\n");
}

TEST(NumberedHeadingsTest, HeadingsMayHaveMarksAndNotes) {
  EXPECT_EQ(Tree("  _CHAPTER I_\n\n_The\nMill_\n" + Prose() +
                 "  CHAPTER II[1]\n\nThe Road[2]\n" + Prose() +
                 "  CHAPTER III*\n" + Prose()),
            "1 CHAPTER I|The Mill\n1 CHAPTER II|The Road\n1 CHAPTER III|\n");
}

TEST(NumberedHeadingsTest, NumbersMayBeWordsOrHaveNoPoint) {
  EXPECT_EQ(Tree("ONE\n" + Prose() + "TWO\n\nThe Road\n" + Prose() + "THREE\n" +
                 Prose()),
            "1 |ONE\n1 |TWO: The Road\n1 |THREE\n");
  EXPECT_EQ(Tree("1 The Mill\n" + Prose() + "2 The Road\n" + Prose() +
                 "3 cows came by\n" + Prose() + "4 The Sea\n" + Prose()),
            "1 1|The Mill\n1 2|The Road\n");
}

}  // namespace
}  // namespace tiercel::document
