#include "lib/documents/pdf_headings.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/documents/document.h"
#include "lib/documents/document_for_test.h"
#include "lib/documents/pdf_for_test.h"

namespace tiercel::document {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Lines = std::vector<PdfTestLine>;

// Returns a page: its large lines, 30 points apart, and prose below them.
Lines PageBelow(const Lines& large) {
  Lines lines = large;
  int bottom = 740 - 30 * static_cast<int>(large.size());
  for (size_t i = 0; i < large.size(); ++i) {
    lines[i].bottom = 740 - 30 * static_cast<int>(i);
  }
  for (int i = 0; i < 12; ++i) {
    lines.push_back(
        {72, bottom -= 12, "and so they went over the hill and far away, and"});
  }
  return lines;
}

PdfTestLine Large(const std::string& text, double size) {
  return {72, 0, text, size};
}

Document BookWith(const std::vector<Lines>& pages,
                  const std::vector<PdfTestItem>& outline = {}) {
  return Good(ReadDocumentBytes("book", PdfOf(pages, outline)));
}

std::vector<std::string> HeadingsIn(const Document& document) {
  std::vector<std::string> lines;
  for (const Section& section : document.sections) {
    lines.push_back(std::to_string(section.level) + " " + section.label + "|" +
                    section.title);
  }
  return lines;
}

TEST(PdfHeadingsTest, LargeLinesAreHeadings) {
  const Document document = BookWith(
      {PageBelow({Large("The Mill", 20)}), PageBelow({Large("Of Water", 14)}),
       PageBelow({Large("The Road of the", 20), Large("River", 20)}),
       PageBelow({Large("Of Carts", 14.3)})});
  EXPECT_THAT(HeadingsIn(document),
              ElementsAre("1 |The Mill", "2 |Of Water",
                          "1 |The Road of the River", "2 |Of Carts"));
  EXPECT_EQ(document.text.substr(document.sections[1].begin, 8), "Of Water");
}

TEST(PdfHeadingsTest, ALabelTakesTheLineBehindIt) {
  EXPECT_THAT(
      HeadingsIn(BookWith(
          {PageBelow({Large("Chapter 1", 14), Large("The Mill", 20)}),
           PageBelow({Large("Chapter 2", 14), Large("The Road", 20)})})),
      ElementsAre("1 Chapter 1|The Mill", "1 Chapter 2|The Road"));
}

TEST(PdfHeadingsTest, PartsWithoutANumberStandBesideThoseWithOne) {
  EXPECT_THAT(
      HeadingsIn(BookWith({{{72, 600, "Of Mills", 24}},
                           PageBelow({Large("Why Mills", 14)}),
                           PageBelow({Large("1. The Mill", 14)}),
                           PageBelow({Large("2. The Road", 14)}),
                           PageBelow({Large("Thanks", 14)})})),
      ElementsAre("1 |Why Mills", "1 1|The Mill", "1 2|The Road", "1 |Thanks"));
}

TEST(PdfHeadingsTest, OfATitlePageTheLargestLineIsTheTitle) {
  const Document document = BookWith({{{72, 700, "A Thesis", 12},
                                       {72, 600, "Of Mills", 24},
                                       {72, 500, "Ann Bell", 14}},
                                      PageBelow({Large("The Mill", 14)}),
                                      PageBelow({Large("The Road", 14)})});
  EXPECT_THAT(HeadingsIn(document), ElementsAre("1 |The Mill", "1 |The Road"));
  EXPECT_EQ(document.title, "Of Mills");
}

TEST(PdfHeadingsTest, LinesInSizesOfTheirOwnBeforeTheFirstNumberAreNone) {
  const Document document = BookWith({PageBelow({Large("Of Mills", 24)}),
                                      PageBelow({Large("Ann Bell", 18)}),
                                      PageBelow({Large("1. The Mill", 14)}),
                                      PageBelow({Large("2. The Road", 14)}),
                                      PageBelow({Large("3. The Hill", 14)})});
  EXPECT_THAT(HeadingsIn(document),
              ElementsAre("1 1|The Mill", "1 2|The Road", "1 3|The Hill"));
  EXPECT_EQ(document.title, "Of Mills");
}

TEST(PdfHeadingsTest, NumbersAndWordsShowLevels) {
  EXPECT_THAT(HeadingsIn(BookWith({PageBelow({Large("1. Mills", 14)}),
                                   PageBelow({Large("1.1. Of Water", 14)}),
                                   PageBelow({Large("2. Roads", 14)})})),
              ElementsAre("1 1|Mills", "2 1.1|Of Water", "1 2|Roads"));
  EXPECT_THAT(
      HeadingsIn(
          BookWith({PageBelow({Large("Chapter 1", 14), Large("The Mill", 20)}),
                    PageBelow({Large("Of Water", 16)}),
                    PageBelow({Large("Chapter 2", 14)})})),
      ElementsAre("1 Chapter 1|The Mill", "2 |Of Water", "1 Chapter 2|"));
}

TEST(PdfHeadingsTest, WhatTheContentsListIsNone) {
  std::vector<Lines> pages = {{{72, 740, "Contents", 14}}};
  int bottom = 740;
  for (const std::string title : {"The Mill", "The Road", "The Hill"}) {
    pages[0].push_back({72, bottom -= 24, title, 12});
    pages.push_back(PageBelow({Large(title, 14)}));
  }
  EXPECT_THAT(HeadingsIn(BookWith(pages)),
              ElementsAre("1 |The Mill", "1 |The Road", "1 |The Hill"));
}

// The pages of a talk have a title and a few words.
TEST(PdfHeadingsTest, EachPageOfATalkHasItsTitle) {
  std::vector<Lines> pages;
  for (const std::string title : {"Mills", "Roads", "Mills"}) {
    pages.push_back({{72, 700, title, 30}});
    for (int i = 0; i < 3; ++i) {
      pages.back().push_back({72, 600 - 40 * i, "* it is so", 18});
    }
  }
  EXPECT_THAT(HeadingsIn(BookWith(pages)),
              ElementsAre("1 |Mills", "1 |Roads", "1 |Mills"));
}

TEST(PdfHeadingsTest, ASayingInLargeTypeIsNone) {
  const auto page = [](const std::string& word) {
    return PageBelow(Lines(5, Large(word + " is the mill of the sky", 14)));
  };
  EXPECT_THAT(BookWith({page("Rain"), page("Wind"), page("Snow")}).sections,
              IsEmpty());
}

TEST(PdfHeadingsTest, ANameOnEachSheetIsNone) {
  std::vector<Lines> pages;
  for (const std::string title : {"Mills", "Roads", "Hills", "Lakes"}) {
    pages.push_back(PageBelow({Large(title, 16)}));
    pages.back().push_back({72, 300, "Bell and Sons", 16});
  }
  EXPECT_THAT(HeadingsIn(BookWith(pages)),
              ElementsAre("1 |Mills", "1 |Roads", "1 |Hills", "1 |Lakes"));
}

TEST(PdfHeadingsTest, ALineOfContentsIsNone) {
  const Lines contents = {Large("Mill ....... 2", 14),
                          Large("Road ....... 3", 14)};
  EXPECT_THAT(
      HeadingsIn(BookWith({PageBelow(contents), PageBelow({Large("Mill", 20)}),
                           PageBelow({Large("Road", 20)})})),
      ElementsAre("1 |Mill", "1 |Road"));
}

TEST(PdfHeadingsTest, LettersThatStandApartAreAWord) {
  EXPECT_THAT(HeadingsIn(BookWith({PageBelow({Large("C H A P T E R 1", 14)}),
                                   PageBelow({Large("C H A P T E R 2", 14)})})),
              ElementsAre("1 CHAPTER 1|", "1 CHAPTER 2|"));
}

// Numbers that are large here and there alone: the size does not show them.
TEST(PdfHeadingsTest, ChaptersOfWhichFewAreLargeAreAllFound) {
  EXPECT_THAT(HeadingsIn(BookWith({PageBelow({Large("Chapter 1", 14)}),
                                   PageBelow({Large("Chapter 2", 10)}),
                                   PageBelow({Large("Chapter 3", 10)}),
                                   PageBelow({Large("Chapter 4", 14)})})),
              ElementsAre("1 Chapter 1|", "1 Chapter 2|", "1 Chapter 3|",
                          "1 Chapter 4|"));
}

// The numbers of a list are no chapters.
TEST(PdfHeadingsTest, AnOutlineBesideAListIsUsed) {
  std::vector<Lines> pages;
  for (const std::string number : {"1", "2", "3", "4"}) {
    pages.push_back(PageBelow({}));
    pages.back().push_back({72, 400, number + ". Rain"});
    for (int i = 0; i < 12; ++i) {
      pages.back().push_back(
          {72, 370 - 12 * i,
           "and so they went home over the hill and far away"});
    }
  }
  const Document document = BookWith(pages, {{"Mills", 1}, {"Roads", 3}});
  EXPECT_THAT(HeadingsIn(document), ElementsAre("1 |Mills", "1 |Roads"));
  EXPECT_THAT(document.warnings, IsEmpty());
}

TEST(PdfHeadingsTest, AnOutlineThatMissesTheChaptersIsNotUsed) {
  const std::vector<Lines> pages = {
      PageBelow({Large("Chapter 1", 14)}), PageBelow({Large("Chapter 2", 14)}),
      PageBelow({Large("Chapter 3", 14)}), PageBelow({Large("Chapter 4", 14)})};
  const Document document = BookWith(pages, {{"Cover", 0}, {"Blank", 0}});
  EXPECT_THAT(HeadingsIn(document),
              ElementsAre("1 Chapter 1|", "1 Chapter 2|", "1 Chapter 3|",
                          "1 Chapter 4|"));
  EXPECT_THAT(
      document.warnings,
      ElementsAre(HasSubstr("the outline was not used: its 2 entries")));
  // One with as many entries as there are chapters has reasons of its own.
  EXPECT_THAT(
      HeadingsIn(
          BookWith(pages, {{"Abe", 0}, {"Ben", 0}, {"Cy", 0}, {"Dan", 0}}))
          .front(),
      HasSubstr("Abe"));
}

}  // namespace
}  // namespace tiercel::document
