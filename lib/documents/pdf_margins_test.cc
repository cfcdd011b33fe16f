#include "lib/documents/pdf_margins.h"

#include <string>
#include <utility>
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
using ::testing::Not;

using Lines = std::vector<PdfTestLine>;

Document BookIn(const std::string& pdf) {
  return Good(ReadDocumentBytes("book", pdf));
}

std::vector<std::string> NumbersOf(const Document& document) {
  std::vector<std::string> numbers;
  for (const Page& page : document.pages) numbers.push_back(page.number);
  return numbers;
}

// Returns a page of full lines below a running head and above a number.
Lines PageOf(const std::string& head, const std::string& text,
             const std::string& number) {
  return {{72, 750, head},
          {72, 650, text},
          {72, 638, "and so they went over the hill and far away until"},
          {72, 626, "evening came."},
          {300, 40, number}};
}

TEST(PdfMarginsTest, HeadsAndPageNumbersAreDropped) {
  const Document document = BookIn(PdfOf(
      {PageOf("THE HILL", "It was late in the day when they left the houses,",
              "5"),
       PageOf("THE HILL", "It was late in the year when they had come to it,",
              "6"),
       PageOf("THE HILL", "It was late in the war when they had heard of it,",
              "7")}));
  const std::string rest =
      " and so they went over the hill and far away until evening came.\n";
  EXPECT_EQ(document.text,
            "It was late in the day when they left the houses," + rest +
                "\nIt was late in the year when they had come to it," + rest +
                "\nIt was late in the war when they had heard of it," + rest);
  EXPECT_THAT(NumbersOf(document), ElementsAre("5", "6", "7"));
  EXPECT_EQ(document.text.substr(document.pages[1].begin, 23),
            "It was late in the year");
  EXPECT_THAT(document.warnings, IsEmpty());
}

TEST(PdfMarginsTest, TheNumberOfAHeadingIsNoPages) {
  std::vector<Lines> pages = {
      {{72, 700, "The Hymns of the River and the Hill"}}};
  for (int i = 1; i <= 5; ++i) {
    pages.push_back({{72, 750, "Hymn " + std::to_string(i)},
                     {72, 738, "The river ran on, line " + std::string(i, 'x')},
                     {72, 726, "and the hill stood still over the river."}});
  }
  const Document document = BookIn(PdfOf(pages));
  EXPECT_THAT(NumbersOf(document), ElementsAre("1", "2", "3", "4", "5", "6"));
  EXPECT_THAT(document.text, HasSubstr("Hymn 5"));
}

TEST(PdfMarginsTest, ALineThatStandsOnceIsNoHead) {
  const Document document =
      BookIn(PdfOf({PageOf("Chapter 1", "a", "x"), PageOf("Rain", "b", "y"),
                    PageOf("Chapter 2", "c", "z")}));
  EXPECT_THAT(document.text, HasSubstr("Rain"));
  EXPECT_THAT(document.text, HasSubstr("Chapter 2"));
}

// Returns the lines of a page of prose, from a height down.
Lines Prose(int top, int count) {
  Lines lines;
  for (int i = 0; i < count; ++i) {
    lines.push_back({72, top - 12 * i,
                     "and so they went over the hill and far away, until"});
  }
  return lines;
}

// Returns pages of prose with these lines each, in which '#' is the number of
// the page.
std::vector<Lines> PagesWith(int count, const Lines& more) {
  std::vector<Lines> pages;
  for (int p = 1; p <= count; ++p) {
    pages.push_back(Prose(650, 20));
    for (PdfTestLine line : more) {
      const size_t at = line.text.find('#');
      if (at != std::string::npos) line.text.replace(at, 1, std::to_string(p));
      pages.back().push_back(line);
    }
  }
  return pages;
}

// Returns the number of times that `word` stands in a text.
int CountOf(const std::string& word, const std::string& text) {
  int count = 0;
  for (size_t at = text.find(word); at != std::string::npos;
       at = text.find(word, at + 1)) {
    ++count;
  }
  return count;
}

TEST(PdfMarginsTest, ALargeTitleAboveEachPageIsText) {
  const auto psalms = [](double size) {
    return BookIn(PdfOf(PagesWith(6, {{72, 740, "Psalm #", size}}))).text;
  };
  EXPECT_EQ(CountOf("Psalm", psalms(20)), 6);
  EXPECT_EQ(CountOf("Psalm", psalms(10)), 0);
  // A title that some pages repeat is text; a line above all pages is a head.
  std::vector<Lines> pages = PagesWith(3, {{72, 740, "Results", 20}});
  const std::vector<Lines> others = PagesWith(9, {});
  pages.insert(pages.end(), others.begin(), others.end());
  EXPECT_EQ(CountOf("Results", BookIn(PdfOf(pages)).text), 3);
  EXPECT_EQ(
      CountOf("Report",
              BookIn(PdfOf(PagesWith(6, {{72, 740, "Report", 20}}))).text),
      0);
}

// A title of years does not number the pages.
TEST(PdfMarginsTest, NumbersOfLargeTitlesAreNoPages) {
  std::vector<Lines> pages = PagesWith(4, {{72, 740, "Mills of 200#", 20}});
  EXPECT_THAT(NumbersOf(BookIn(PdfOf(pages))), ElementsAre("1", "2", "3", "4"));
}

TEST(PdfMarginsTest, AHeadMayHaveTwoLines) {
  EXPECT_EQ(CountOf("The",
                    BookIn(PdfOf(PagesWith(4, {{72, 750, "The Hills", 9},
                                               {72, 739, "The First Day", 9}})))
                        .text),
            0);
  // The label of each chapter above its number is none.
  const std::string chapters[] = {"ONE", "TWO", "THREE", "FOUR"};
  std::vector<Lines> pages;
  for (const std::string& number : chapters) {
    pages.push_back(
        PagesWith(1, {{72, 750, "CHAPTER", 9}, {72, 739, number, 9}})[0]);
  }
  EXPECT_EQ(CountOf("CHAPTER", BookIn(PdfOf(pages)).text), 4);
}

TEST(PdfMarginsTest, ATitleThatTheOutlineNamesIsText) {
  const std::vector<Lines> pages = PagesWith(4, {{72, 740, "The Hill"}});
  const std::string text =
      BookIn(PdfOf(pages, {{"The Hill", 1}, {"The River", 2}})).text;
  EXPECT_EQ(text.find("The Hill"), text.rfind("The Hill"));
  EXPECT_THAT(text, HasSubstr("The Hill"));
}

// On page 1 the heading "1" has the page's number; it stands lower than numbers
// of pages do, and page 1 has its own at its foot or none.
TEST(PdfMarginsTest, AHeadingWithThePagesNumberIsNone) {
  for (const int foot : {40, -20}) {
    std::vector<Lines> pages = PagesWith(6, {{300, 40, "#"}});
    pages[0].back().bottom = foot;
    pages[0].push_back({300, 700, "1", 11});
    pages[3].push_back({300, 700, "2", 11});
    const Document document = BookIn(PdfOf(pages));
    ASSERT_EQ(document.sections.size(), 2U);
    EXPECT_EQ(document.sections[0].label, "1");
    EXPECT_EQ(document.sections[1].label, "2");
    EXPECT_THAT(NumbersOf(document), ElementsAre("1", "2", "3", "4", "5", "6"));
    EXPECT_EQ(document.text.find("4"), std::string::npos);
  }
}

TEST(PdfMarginsTest, TheSameNoteOnManyPagesIsText) {
  const PdfTestLine sign = {72, 410,
                            "They went* over the hill and home again."};
  const PdfTestLine number = {373, 654, "1", 6};
  for (const std::string note : {"1 See the map.", "* See the map."}) {
    const std::string text =
        BookIn(PdfOf(PagesWith(4, {{72, 60, note, 7}, sign, number}))).text;
    EXPECT_EQ(CountOf("See the map", text), 4) << note;
  }
  // The foot of a page may begin with a number, too.
  for (const std::string foot : {"The Maps", "12 Maps"}) {
    EXPECT_THAT(BookIn(PdfOf(PagesWith(4, {{72, 60, foot, 7}}))).text,
                Not(HasSubstr("Maps")));
  }
}

// A line is not dropped because a head stands at its height on other pages.
TEST(PdfMarginsTest, TheFirstLineOfATextIsNoHead) {
  std::vector<Lines> pages = PagesWith(5, {{72, 700, "The Hills"}});
  pages.push_back(Prose(700, 20));
  pages.back()[0].text = "It was late in the day, when they left the house";
  const std::string text = BookIn(PdfOf(pages)).text;
  EXPECT_THAT(text, HasSubstr("It was late"));
  EXPECT_THAT(text, Not(HasSubstr("The Hills")));
}

TEST(PdfMarginsTest, TwoPagesHaveNumbersAtTheirFeet) {
  for (const std::string number : {"#", "- # -"}) {
    const Document document = BookIn(PdfOf(PagesWith(2, {{300, 40, number}})));
    EXPECT_THAT(document.text, Not(HasSubstr("1")));
    EXPECT_THAT(document.sections, IsEmpty());
  }
  // A number above the text may be that of a chapter.
  EXPECT_THAT(BookIn(PdfOf(PagesWith(2, {{300, 720, "#"}}))).text,
              HasSubstr("2"));
}

// Returns pages whose lines have numbers, every `step` lines, that count on.
std::vector<Lines> NumberedPages(int step, int left, const std::string& text) {
  std::vector<Lines> pages(3);
  int count = 0;
  for (Lines& page : pages) {
    for (int i = 0; i < 20; ++i) {
      page.push_back({72, 720 - 26 * i, text});
      if (++count % step > 0) continue;
      page.push_back({left, 720 - 26 * i, std::to_string(count), 8});
    }
  }
  return pages;
}

TEST(PdfMarginsTest, NumbersOfLinesAreLeftOut) {
  const std::string line = "and so they went over the hill and far away, until";
  const std::string prose = BookIn(PdfOf(NumberedPages(1, 50, line))).text;
  EXPECT_EQ(prose.find_first_of("0123456789"), std::string::npos);
  EXPECT_THAT(prose, HasSubstr(line + " " + line));
  EXPECT_EQ(BookIn(PdfOf(NumberedPages(5, 400, "and far away")))
                .text.find_first_of("0123456789"),
            std::string::npos);
}

// Years and columns of tables count evenly, too.
TEST(PdfMarginsTest, NumbersThatDoNotCountTheLinesStay) {
  std::vector<Lines> years = NumberedPages(5, 30, "and far away");
  std::vector<Lines> table = NumberedPages(1, 400, "and far away");
  for (std::vector<Lines>* pages : {&years, &table}) {
    const int factor = pages == &table ? 5 : 1;
    for (Lines& page : *pages) {
      for (PdfTestLine& line : page) {
        if (line.size != 8) continue;
        const int number = std::stoi(line.text);
        line.text = std::to_string(factor == 1 ? 1800 + number : 5 * number);
      }
    }
    EXPECT_THAT(BookIn(PdfOf(*pages)).text,
                HasSubstr(factor == 1 ? "1825" : "125"));
  }
}

TEST(PdfMarginsTest, NumbersOfSentencesStay) {
  EXPECT_THAT(
      BookIn(PdfOf(NumberedPages(
                 1, 40, "It was late in the day, when they left their house.")))
          .text,
      HasSubstr("17"));
}

// Records of courts have the same numbers on each page, and short lines.
TEST(PdfMarginsTest, NumbersThatBeginAnewWithEachPageAreLeftOut) {
  std::vector<Lines> pages;
  for (int i = 0; i < 3; ++i) {
    pages.push_back(NumberedPages(1, 40, "A. I did, sir.")[0]);
    pages.back().push_back(
        {72, 190, "and so they went over the hill and away"});
  }
  const std::string text = BookIn(PdfOf(pages)).text;
  EXPECT_EQ(text.find_first_of("0123456789"), std::string::npos);
  EXPECT_THAT(text, HasSubstr("A. I did, sir.\nA. I did, sir.\n"));
}

TEST(PdfMarginsTest, NumbersOfAListOrATableStay) {
  std::vector<Lines> pages = NumberedPages(1, 40, "Ann Bell");
  for (Lines& page : pages) {
    page.push_back({72, 190, "and so they went over the hill and far away"});
  }
  EXPECT_THAT(BookIn(PdfOf(pages)).text, HasSubstr("17"));
  // On one page of four.
  const std::string line = "and so they went over the hill and far away, until";
  pages = PagesWith(3, {});
  pages.push_back(NumberedPages(1, 50, line)[0]);
  EXPECT_THAT(BookIn(PdfOf(pages)).text, HasSubstr("17"));
}

TEST(PdfMarginsTest, TurnedLinesOfMarginsAreLeftOut) {
  const PdfTestLine turned = {30, 300, "Read at home on day #", 8, true};
  EXPECT_THAT(BookIn(PdfOf(PagesWith(4, {turned}))).text,
              Not(HasSubstr("home")));
  // A point at the beginning of a line is higher than it is wide, too.
  EXPECT_THAT(BookIn(PdfOf(PagesWith(4, {{30, 300, "iii", 10, true}}))).text,
              HasSubstr("iii"));
  const Document one = BookIn(PdfOf(PagesWith(1, {turned})));
  EXPECT_THAT(one.text, HasSubstr("Read at home on day 1"));
  EXPECT_THAT(one.sections, IsEmpty());
}

}  // namespace
}  // namespace tiercel::document
