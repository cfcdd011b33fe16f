#include "lib/reader/selection.h"

#include <variant>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/reader/book_for_test.h"
#include "lib/reader/places.h"

namespace tiercel::reader {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kBook =
    "@i\nfront\n"
    "# Part I|Home\n## Chapter 1|Loomings\none\n@12\n## Chapter 2|The Bag\n"
    "two\n"
    "# Part II|Away\n## Chapter 3|The Inn\nthree\n@13\nmore\n@14\n"
    "## Chapter 4|The Bed\nfour\n";

Document Chosen(const document::Result& result) {
  const auto* book = std::get_if<Document>(&result);
  EXPECT_NE(book, nullptr) << std::get<document::Error>(result).message;
  return book == nullptr ? Document() : *book;
}

Document Chapters(const char* choice) {
  return Chosen(SelectChapters(BookOf(kBook), *ParseChapters(choice)));
}

std::string Refusal(const document::Result& result) {
  const auto* error = std::get_if<document::Error>(&result);
  EXPECT_NE(error, nullptr);
  return error == nullptr ? "" : error->code + ": " + error->message;
}

TEST(SelectionTest, ChoicesAreReadStrictly) {
  const auto choice = ParseChapters("3,5-7");
  ASSERT_TRUE(choice.has_value());
  ASSERT_EQ(choice->ranges.size(), 2u);
  EXPECT_EQ(choice->ranges[0].first, 3);
  EXPECT_EQ(choice->ranges[0].last, 3);
  EXPECT_EQ(choice->ranges[1].first, 5);
  EXPECT_EQ(choice->ranges[1].last, 7);
  EXPECT_EQ(ParseChapters("2.1")->title, "2.1");
  for (const char* wrong : {"", " ", ",", "3,", "3-", "-3", "7-5", "1--2",
                            "1-2-3", "12345678901234567890"}) {
    EXPECT_FALSE(ParseChapters(wrong).has_value()) << wrong;
  }
  for (const char* wrong : {"", ",", "3,", "3-", "-3"}) {
    EXPECT_FALSE(ParsePages(wrong).has_value()) << wrong;
  }
}

TEST(SelectionTest, ChaptersByNumber) {
  EXPECT_EQ(Chapters("2").text, "The Bag\n\ntwo\n");
  // Chapters come in the order of the book, each once, and neighbours in one
  // piece.
  EXPECT_EQ(Chapters("4,1,3-4").text,
            "Loomings\n\none\n\n\nThe Inn\n\nthree\nmore\nThe Bed\n\nfour\n");
  EXPECT_THAT(Refusal(SelectChapters(BookOf(kBook), *ParseChapters("4-5"))),
              HasSubstr("chapter_not_found: chapters: not all of 4-5 are "
                        "there; there are 1 Loomings, 2 The Bag"));
  EXPECT_THAT(Refusal(SelectChapters(BookOf("x\n"), *ParseChapters("1"))),
              HasSubstr("no_chapters"));
}

TEST(SelectionTest, ChaptersByTitle) {
  EXPECT_EQ(Chapters("the  BAG").text, "The Bag\n\ntwo\n");
  EXPECT_EQ(Chapters("Chapter 1").text, "Loomings\n\none\n");
  EXPECT_THAT(Chapters("away").text, HasSubstr("three\nmore\nThe Bed"));
  // A part of a title selects all chapters that have it.
  EXPECT_EQ(Chapters("the b").text, "The Bag\n\ntwo\n\n\nThe Bed\n\nfour\n");
  EXPECT_THAT(Refusal(SelectChapters(BookOf(kBook), *ParseChapters("Whale"))),
              HasSubstr("chapter_not_found: chapters: no title has 'Whale'"));
}

TEST(SelectionTest, PagesAsTheyAreNumbered) {
  const auto pages = [](const char* choice) {
    return SelectPages(BookOf(kBook), *ParsePages(choice));
  };
  EXPECT_EQ(Chosen(pages("13")).text, "more\n");
  EXPECT_EQ(Chosen(pages("13-14")).text, "more\nThe Bed\n\nfour\n");
  EXPECT_EQ(Chosen(pages("i,14")).text,
            "front\nHome\n\nLoomings\n\none\n\n\nThe Bed\n\nfour\n");
  EXPECT_THAT(Refusal(pages("15")),
              HasSubstr("page_not_found: pages: no page 15; they go from i "
                        "to 14"));
  EXPECT_THAT(Refusal(pages("13-12")), HasSubstr("no page 12 at or after 13"));
  EXPECT_THAT(Refusal(SelectPages(BookOf("x\n"), *ParsePages("1"))),
              HasSubstr("no_pages"));
}

TEST(SelectionTest, WhatIsChosenKeepsItsPlaces) {
  const Document book = Chapters("2,4");
  const Places all = PlacesOf(book, 0, book.text.size());
  EXPECT_THAT(all.chapters, ElementsAre("The Bag", "The Bed"));
  EXPECT_THAT(all.pages, ElementsAre("12", "14"));
  const size_t four = book.text.find("four");
  EXPECT_EQ(PlacesOf(book, four, four + 4).text, "Chapter 4 The Bed, page 14");
  const size_t two = book.text.find("two");
  EXPECT_EQ(PlacesOf(book, two, two + 3).text, "Chapter 2 The Bag, page 12");
  // A page may begin within a chapter, and the chapter may be one between two
  // parts.
  const Document between = BookOf(
      "# Part I|Home\n## Chapter 1|Loomings\none\n# |Interlude\na\n@5\nb\n"
      "# Part II|Away\n## Chapter 2|The Bag\ntwo\n@6\nmore\n"
      "## Chapter 3|The Inn\nthree\n");
  const auto place = [&between](const char* choice) {
    const Document some = Chosen(SelectPages(between, *ParsePages(choice)));
    return PlacesOf(some, 0, 1).text;
  };
  EXPECT_EQ(place("5"), "Interlude, page 5");
  EXPECT_EQ(place("6"), "Chapter 2 The Bag, page 6");
  const Document page = Chosen(SelectPages(BookOf(kBook), *ParsePages("13")));
  EXPECT_EQ(PlacesOf(page, 0, page.text.size()).text,
            "Chapter 3 The Inn, page 13");
}

TEST(SelectionTest, WhatIsChosenKeepsItsNumbers) {
  // Chapters count by their places, since no label has a number.
  const Document book = BookOf(
      "# |Front\na\n# |Loomings\nb\n## |Aside\nc\n# |The Bag\nd\n@9\ndd\n"
      "# |The Inn\ne\n");
  const auto chosen = [](const Document& from, const char* choice) {
    return Chosen(SelectChapters(from, *ParseChapters(choice)));
  };
  const Document some = chosen(book, "2,4");
  EXPECT_EQ(ChapterList(some, 9), "2 Loomings, 4 The Inn");
  EXPECT_EQ(chosen(some, "4").text, "The Inn\n\ne\n");
  EXPECT_THAT(Refusal(SelectChapters(some, *ParseChapters("1"))),
              HasSubstr("there are 2 Loomings, 4 The Inn"));
  // The sections of the one chapter do not become chapters, not even in a
  // selection from the selection.
  EXPECT_EQ(ChapterList(chosen(book, "2"), 9), "2 Loomings");
  EXPECT_EQ(ChapterList(chosen(some, "2"), 9), "2 Loomings");
  EXPECT_EQ(ChapterList(chosen(book, "aside"), 9), "2 Loomings");
  EXPECT_EQ(ChapterList(Chosen(SelectPages(book, *ParsePages("9"))), 9),
            "3 The Bag, 4 The Inn");
}

TEST(SelectionTest, PagesWithADashInTheirNumbers) {
  const Document book = BookOf(
      "@xii\na\n@3\nb\n@4\nc\n@A-3\nd\n@A-4\ne\n@A-5\nf\n@3-4\ng\n"
      "@3\nh\n");
  const auto text = [&](const char* choice) {
    return Chosen(SelectPages(book, *ParsePages(choice))).text;
  };
  EXPECT_EQ(text("xii"), "a\n");
  EXPECT_EQ(text("A-4"), "e\n");
  EXPECT_EQ(text("A-3-A-5"), "d\ne\nf\n");
  EXPECT_EQ(text("4-A-3"), "c\nd\n");
  EXPECT_EQ(text("A-5-3"), "f\ng\nh\n");
  EXPECT_EQ(text("3-4"), "g\n");  // a page, not a range
  EXPECT_EQ(text("xii - 3"), "a\nb\n");
  EXPECT_EQ(text("xii,4"), "a\n\n\nc\n");
  const auto refusal = [&](const char* choice) {
    return Refusal(SelectPages(book, *ParsePages(choice)));
  };
  EXPECT_THAT(refusal("A-9"), HasSubstr("no page A-9; they go from xii to 3"));
  EXPECT_THAT(
      Refusal(SelectPages(BookOf("@7\na\n@8\nb\n"), *ParsePages("5-8"))),
      HasSubstr("no page 5; they go from 7 to 8"));
  EXPECT_THAT(refusal("A-5-A-3"), HasSubstr("no page A-3 at or after A-5"));
  EXPECT_THAT(refusal("B-1-B-2"), HasSubstr("no page B-1-B-2;"));
}

TEST(SelectionTest, AListNamesSomeAndCountsTheRest) {
  EXPECT_EQ(ChapterList(BookOf(kBook), 2),
            "1 Loomings, 2 The Bag and 2 more, which --toc lists");
}

}  // namespace
}  // namespace tiercel::reader
