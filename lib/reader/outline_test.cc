#include "lib/reader/outline.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/reader/book_for_test.h"
#include "lib/reader/text.h"

namespace tiercel::reader {
namespace {

using ::testing::ElementsAre;

std::optional<int64_t> NumberIn(const std::string& label) {
  return NumberOf(
      {.level = 1, .label = label, .title = "", .begin = 0, .anchor = ""});
}

// Returns "3 Loomings" for each chapter.
std::vector<std::string> Chapters(const Document& book) {
  std::vector<std::string> chapters;
  for (const Chapter& chapter : ChaptersOf(book)) {
    chapters.push_back(
        (chapter.number.has_value() ? std::to_string(*chapter.number) : "-") +
        " " + TitleOf(book.sections[chapter.section]));
  }
  return chapters;
}

TEST(OutlineTest, NumbersOfLabels) {
  EXPECT_EQ(NumberIn("Chapter 3"), 3);
  EXPECT_EQ(NumberIn("12."), 12);
  EXPECT_EQ(NumberIn("CHAPTER  XIV:"), 14);
  EXPECT_EQ(NumberIn("MCMXC"), 1990);
  EXPECT_EQ(NumberIn("iv"), std::nullopt);
  EXPECT_EQ(NumberIn("IIII"), std::nullopt);
  EXPECT_EQ(NumberIn("VV"), std::nullopt);
  EXPECT_EQ(NumberIn("2.1"), std::nullopt);
  EXPECT_EQ(NumberIn("Preface"), std::nullopt);
  EXPECT_EQ(NumberIn(""), std::nullopt);
  EXPECT_EQ(NumberIn("1234567890123456789012"), std::nullopt);
}

TEST(OutlineTest, ChaptersAreWhereMostNumbersAre) {
  EXPECT_THAT(Chapters(BookOf("# |Preface\n"
                              "# Part I|Home\n## Chapter 1|A\n## Chapter 2|B\n"
                              "# Part II|Away\n## Chapter 3|C\n### 3.1|D\n"
                              "# |Index\n")),
              ElementsAre("- Preface", "1 A", "2 B", "3 C", "- Index"));
}

TEST(OutlineTest, ChaptersThatCountAnewAreCountedThrough) {
  EXPECT_THAT(Chapters(BookOf("# Part I|Home\n## 1|A\n## 2|B\n"
                              "# Part II|Away\n## 1|C\n")),
              ElementsAre("1 A", "2 B", "3 C"));
}

TEST(OutlineTest, WithoutNumbersTheFirstLevelThatDivides) {
  EXPECT_THAT(Chapters(BookOf("# |The book\n## |A\n## |B\n### |b\n")),
              ElementsAre("1 A", "2 B"));
  EXPECT_THAT(Chapters(BookOf("# |Alone\n")), ElementsAre("1 Alone"));
  EXPECT_THAT(Chapters(BookOf("no sections\n")), ElementsAre());
  EXPECT_EQ(ChapterLevel(BookOf("no sections\n")), 0);
}

TEST(OutlineTest, SectionsEndAtTheirLevelOrAboveIt) {
  const Document book = BookOf("# |A\n## |B\nb\n# |C\nc\n");
  EXPECT_EQ(SectionEnd(book, 0), book.sections[2].begin);
  EXPECT_EQ(SectionEnd(book, 1), book.sections[2].begin);
  EXPECT_EQ(SectionEnd(book, 2), book.text.size());
}

TEST(OutlineTest, PagesBeginBeforeTheirText) {
  const Document book = BookOf("cover\n@xii\none\n@1\ntwo\n");
  EXPECT_EQ(PageAt(book, 0), "");
  EXPECT_EQ(PageAt(book, 6), "xii");
  EXPECT_EQ(PageAt(book, 9), "xii");
  EXPECT_EQ(PageAt(book, 10), "1");
  EXPECT_EQ(PageAt(book, 99), "1");
}

TEST(OutlineTest, NamesAreOfOneLine) {
  EXPECT_EQ(OneLine(" a \n\t b\f"), "a b");
  EXPECT_EQ(OneLine(" \n"), "");
  const Document book = BookOf("# Chapter 1|Loom \t ings\n# Epilogue|\n# |\n");
  EXPECT_EQ(NameOf(book.sections[0]), "Chapter 1 Loom ings");
  EXPECT_EQ(TitleOf(book.sections[0]), "Loom ings");
  EXPECT_EQ(TitleOf(book.sections[1]), "Epilogue");
  EXPECT_EQ(NameOf(book.sections[2]), "(no title)");
}

}  // namespace
}  // namespace tiercel::reader
