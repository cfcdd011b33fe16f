#include "lib/reader/places.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/reader/book_for_test.h"

namespace tiercel::reader {
namespace {

using ::testing::ElementsAre;

class PlacesTest : public ::testing::Test {
 protected:
  // The places of the run from the first `begin` to the end of the first `end`.
  Places Of(const std::string& begin, const std::string& end) const {
    return PlacesOf(book_, book_.text.find(begin),
                    book_.text.find(end) + end.size());
  }

  const Document book_ = BookOf(
      "front\n\n@1\n# Part I|Home\n@2\n## Chapter 1|Loomings\none\n### |Aside\n"
      "two\n@3\nthree\n## Chapter 2|The Bag\nfour\n@4\nfive\n# |Index\nsix\n");
};

TEST_F(PlacesTest, ChaptersAndPagesOfARun) {
  EXPECT_EQ(Of("one", "one").text, "Chapter 1 Loomings, page 2");
  EXPECT_EQ(Of("two", "three").text, "Chapter 1 Loomings, pages 2 to 3");
  EXPECT_EQ(Of("three", "five").text,
            "Chapter 1 Loomings to Chapter 2 The Bag, pages 3 to 4");
  EXPECT_EQ(Of("six", "six").text, "Index, page 4");
  const Places all = PlacesOf(book_, 0, book_.text.size());
  EXPECT_THAT(all.chapters,
              ElementsAre("Home", "Loomings", "The Bag", "Index"));
  EXPECT_THAT(all.pages, ElementsAre("1", "2", "3", "4"));
}

TEST_F(PlacesTest, WithinAChapterItsSectionsTell) {
  const auto narrow = [&](const std::string& begin, const std::string& end) {
    return NarrowPlace(book_, book_.text.find(begin),
                       book_.text.find(end) + end.size());
  };
  EXPECT_EQ(narrow("one", "one"), "Chapter 1 Loomings, page 2");
  EXPECT_EQ(narrow("two", "three"), "Aside, pages 2 to 3");
  EXPECT_EQ(narrow("one", "three"),
            "Chapter 1 Loomings to Aside, pages 2 to 3");
  EXPECT_EQ(narrow("two", "four"),
            "Chapter 1 Loomings to Chapter 2 The Bag, pages 2 to 3");
  EXPECT_EQ(narrow("front", "front"), "");
  const size_t blank = book_.text.find("\n\nLoomings");
  EXPECT_EQ(NarrowPlace(book_, blank, blank + 2), "");
  // Places are as deep as the sections.
  const Document deep = BookOf("# 2|A\none\n## 2.1|B\ntwo\n### 2.1.1|C\nx\n");
  EXPECT_EQ(NarrowPlace(deep, deep.text.find('x'), deep.text.size()),
            "2.1.1 C");
  EXPECT_EQ(NarrowPlace(deep, deep.text.find("two"), deep.text.size()),
            "2.1 B to 2.1.1 C");
}

TEST_F(PlacesTest, BeforeTheFirstThereIsNone) {
  EXPECT_EQ(Of("front", "front").text, "");
  EXPECT_EQ(Of("front", "Home").text, "Part I Home, page 1");
  EXPECT_EQ(PlacesOf(BookOf("a\n"), 0, 2).text, "");
}

TEST_F(PlacesTest, BlanksAtTheEndsStandNowhere) {
  const size_t end = book_.text.find("The Bag");
  EXPECT_EQ(PlacesOf(book_, book_.text.find("three"), end).text,
            "Chapter 1 Loomings, page 3");
  const size_t before = book_.text.find("\n\nLoomings");
  EXPECT_EQ(PlacesOf(book_, before, book_.text.find("one")).text,
            "Chapter 1 Loomings, page 2");
  EXPECT_EQ(PlacesOf(book_, before, before + 2).text, "");
  // The run has a page that begins within it.
  const Document book = BookOf("@1\none\n@2\n\ntwo\n");
  EXPECT_EQ(PlacesOf(book, 0, book.text.find("two")).text, "page 1");
}

}  // namespace
}  // namespace tiercel::reader
