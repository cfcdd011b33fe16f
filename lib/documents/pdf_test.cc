#include "lib/documents/pdf.h"

#include <signal.h>
#include <stdlib.h>
#include <zlib.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/documents/document.h"
#include "lib/documents/document_for_test.h"
#include "lib/documents/pdf_for_test.h"
#include "lib/documents/pdf_labels.h"
#include "lib/documents/pdf_layout.h"

namespace tiercel::document {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Lines = std::vector<PdfTestLine>;

Result ReadBytes(const std::string& bytes) {
  return ReadDocumentBytes("book", bytes);
}

// Returns a PDF with a password that no test knows.
std::string LockedPdf() {
  const std::string encryption =
      "/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <" +
      std::string(64, '1') + "> /U <" + std::string(64, '2') +
      "> >> /ID [<31> <31>]";
  return PdfOf({{{72, 700, "x"}}}, {}, encryption);
}

// A program that ignores SIGCHLD gets no exit status of pdftotext.
TEST(PdfTest, ExitStatusesMayBeIgnored) {
  const std::string pdf = PdfOf({{{72, 650, "Rain"}, {72, 600, "It rained."}}},
                                {{"Rain", 0}, {"Snow", 0}});
  const Document seen = Good(ReadBytes(pdf));
  signal(SIGCHLD, SIG_IGN);
  const Result unseen = ReadBytes(pdf);
  const Result locked = ReadBytes(LockedPdf());
  signal(SIGCHLD, SIG_DFL);
  EXPECT_EQ(Good(unseen).text, seen.text);
  EXPECT_EQ(Good(unseen).warnings, seen.warnings);
  EXPECT_EQ(CodeOf(locked), "encrypted_document");
}

TEST(PdfTest, BrokenWordsAreJoined) {
  const Document document = Good(ReadBytes(PdfOf(
      {{{72, 700, "The lighthouse and the well-known road to the light-"},
        {72, 688, "house were a well-"},
        {72, 676, "known place for us all, and for every last mari-"},
        {72, 664, "ner on the whole long coast. We read of Anne-"},
        {72, 652, "Marie, too, and her sister-in-law, whose mother-in-"},
        {72, 640, "law read in those old and yellow papers of the law."}}})));
  EXPECT_EQ(document.text,
            "The lighthouse and the well-known road to the lighthouse were a "
            "well-known place for us all, and for every last mariner on the "
            "whole long coast. We read of Anne-Marie, too, and her "
            "sister-in-law, whose mother-in-law read in those old and yellow "
            "papers of the law.\n");
}

TEST(PdfTest, BreaksThatAreMeantStay) {
  const Document document = Good(ReadBytes(
      PdfOf({{{72, 724, "In the evening they wrote down all that the machine"},
              {72, 712, "did, and how."},
              {72, 700, "for i in the long list of all things; do"},
              {72, 688, "echo $i"},
              {72, 676, "done"}}})));
  EXPECT_EQ(
      document.text,
      "In the evening they wrote down all that the machine did, and how.\n"
      "for i in the long list of all things; do\necho $i\ndone\n");
}

TEST(PdfTest, LinesOfVerseStayApart) {
  const Lines verse = {{72, 700, "The river ran below the mill"},
                       {72, 688, "And no one knew how long it had"},
                       {72, 676, "I saw the wheel and it was still"},
                       {72, 664, "On all the days, and all were sad"}};
  EXPECT_EQ(Good(ReadBytes(PdfOf({verse}))).text,
            "The river ran below the mill\nAnd no one knew how long it had\nI "
            "saw the wheel and it was still\nOn all the days, and all were "
            "sad\n");
}

TEST(PdfTest, LinesWithLeadersStandAlone) {
  // All end at the right edge of the column.
  const Document document = Good(ReadBytes(
      PdfOf({{{72, 700, "The Mill.......................................2"},
              {72, 688, "The Road . . . . . . . . . . . . . . . . . . . 4"},
              {72, 676, "The long way that went along over the hills and"},
              {72, 664, "down to the sea .............................. 6"},
              {72, 652, "The Wind ................................... xii"},
              {72, 640, "It ended in about ... 2 of the days of that week"},
              {72, 628, "and then it was over."}}})));
  EXPECT_EQ(document.text,
            "The Mill.......................................2\n"
            "The Road . . . . . . . . . . . . . . . . . . . 4\n"
            "The long way that went along over the hills and down to the sea "
            ".............................. 6\n"
            "The Wind ................................... xii\n"
            "It ended in about ... 2 of the days of that week and then it was "
            "over.\n");
}

TEST(PdfTest, ASentenceGoesOnOverThePage) {
  const Document document = Good(ReadBytes(
      PdfOf({{{72, 100, "It was late in the day when they left the house,"},
              {72, 88, "and they went on over the hill until they saw the"}},
             {{72, 700, "river below them in the last light of the day and"},
              {72, 688, "the boats."}}})));
  EXPECT_THAT(document.text, HasSubstr("they saw the river below"));
  ASSERT_EQ(document.pages.size(), 2u);
  EXPECT_EQ(document.text.substr(document.pages[1].begin, 11), "river below");
}

TEST(PdfTest, NotesStandAtTheEndOfTheChapter) {
  const Lines first = {{72, 700, "ONE"},
                       {72, 650, "It was late in the day"},
                       {205, 654, "1", 6},
                       {216, 650, "when they left the house,"},
                       {72, 638, "and they went on over the hill to the sea."},
                       {72, 100, "1", 5},
                       {76, 98, "The day is not known.", 7}};
  const Lines second = {
      {72, 700, "It rained on the whole of the long way home."}};
  const Lines third = {{72, 700, "TWO"}, {72, 650, "They slept."}};
  const Document document =
      Good(ReadBytes(PdfOf({first, second, third}, {{"One", 0}, {"Two", 2}})));
  EXPECT_EQ(document.text,
            "ONE\n\nIt was late in the day [1] when they left the house, and "
            "they went on over the hill to the sea.\n\nIt rained on the whole "
            "of the long way home.\n\n[1] The day is not known.\n\nTWO\n\nThey "
            "slept.\n");
  ASSERT_EQ(document.sections.size(), 2u);
  EXPECT_EQ(document.sections[1].title, "Two");
  EXPECT_EQ(document.text.substr(document.sections[1].begin, 3), "TWO");
}

TEST(PdfTest, ANotesOwnNumberNeedNotBeRaised) {
  for (const std::string number : {"3", "3.", "[3]"}) {
    const Lines page = {{72, 650, "It was late in the day"},
                        {205, 654, "3", 6},
                        {216, 650, "when they left the house,"},
                        {72, 638, "and they went on over the hill."},
                        {72, 98, number + " The day is not known.", 7}};
    EXPECT_EQ(Good(ReadBytes(PdfOf({page}))).text,
              "It was late in the day [3] when they left the house, and they "
              "went on over the hill.\n\n[3] The day is not known.\n")
        << number;
  }
  const Lines no_note = {{72, 650, "It was late in the day when they left."},
                         {72, 98, "3 The day is not known.", 7}};
  EXPECT_EQ(
      Good(ReadBytes(PdfOf({no_note}))).text,
      "It was late in the day when they left.\n\n3 The day is not known.\n");
}

// Two columns of six lines, with a reference in each.
Lines TwoColumns() {
  Lines page;
  for (int column : {0, 1}) {
    const int left = column == 0 ? 60 : 330;
    for (int i = 0; i < 6; ++i) {
      page.push_back({left, 700 - 12 * i, "the river went on to the old mill"});
    }
    page.push_back(
        {left + 6 * 33, 700 - 12 * 3 + 4, column == 0 ? "1" : "2", 6});
  }
  return page;
}

// The text of the columns, with these numbers behind lines.
std::string TextOfColumns(const std::string& first, const std::string& second) {
  std::string text;
  for (int i = 0; i < 12; ++i) {
    if (i > 0) text += " ";
    text += "the river went on to the old mill";
    if (i == 3) text += first;
    if (i == 9) text += second;
  }
  return text;
}

TEST(PdfTest, EachColumnHasNotesAtItsFoot) {
  const PdfTestLine first[] = {{60, 110, "1 It was built of oak, and", 7},
                               {60, 101, "it burnt in the flood.", 7}};
  const PdfTestLine second = {330, 110, "2 It was built of stone.", 7};
  const std::string notes[] = {
      "[1] It was built of oak, and it burnt in the flood.",
      "[2] It was built of stone."};
  Lines page = TwoColumns();
  page.insert(page.end(), std::begin(first), std::end(first));
  page.push_back(second);
  EXPECT_EQ(Good(ReadBytes(PdfOf({page}))).text, TextOfColumns(" [1]", " [2]") +
                                                     "\n\n" + notes[0] +
                                                     "\n\n" + notes[1] + "\n");
  // One of them has none, and more text.
  page = TwoColumns();
  page.insert(page.end(), std::begin(first), std::end(first));
  page.push_back({330, 101, "And so it stood."});
  EXPECT_EQ(Good(ReadBytes(PdfOf({page}))).text,
            TextOfColumns(" [1]", "2") + "\n\nAnd so it stood.\n\n" + notes[0] +
                "\n");
  // The notes of both stand below both.
  page = TwoColumns();
  page.push_back({60, 110,
                  "1 It was built of oak, and it burnt in the flood, "
                  "which came at night.",
                  7});
  page.push_back({60, 101, "2 It was built of stone.", 7});
  EXPECT_EQ(Good(ReadBytes(PdfOf({page}))).text,
            TextOfColumns(" [1]", " [2]") +
                "\n\n[1] It was built of oak, and it burnt in the flood, which "
                "came at night.\n\n" +
                notes[1] + "\n");
}

TEST(PdfTest, APageNumberBetweenColumnsWidensNone) {
  Lines page = {{267, 725, "12"}};
  for (const int left : {60, 288}) {
    for (int i = 0; i < 40; ++i) {
      page.push_back({left, 700 - 12 * i, "the river went on to the old mill"});
    }
  }
  const Document document = Good(ReadBytes(PdfOf({page})));
  EXPECT_THAT(document.text, HasSubstr("old mill the river"));
  EXPECT_THAT(document.text, Not(HasSubstr("mill\nthe")));
}

TEST(PdfTest, NotesOfSeveralPagesHaveTheirNumbers) {
  const auto page = [](const std::string& number,
                       const std::string& note) -> Lines {
    return {{72, 650, "It was late in the day"},
            {205, 654, number, 6},
            {216, 650, "when they left the house."},
            {72, 98, number + ". " + note, 7}};
  };
  EXPECT_THAT(Good(ReadBytes(PdfOf({page("1", "The day is not known."),
                                    page("2", "It was built of stone."),
                                    page("3", "By the old road.")})))
                  .text,
              EndsWith("\n\n[1] The day is not known.\n\n[2] It was built of "
                       "stone.\n\n[3] By the old road.\n"));
}

TEST(PdfTest, ARaisedNumberOfItsOwnJoinsItsNote) {
  const Lines page = {{72, 650, "It was late in the day"},
                      {205, 654, "1", 6},
                      {216, 650, "when they left the house."},
                      {72, 104, "1", 5},
                      {76, 98, "The day is not known.", 9}};
  EXPECT_EQ(Good(ReadBytes(PdfOf({page}))).text,
            "It was late in the day [1] when they left the house.\n\n[1] The "
            "day is not known.\n");
  // One that is far before its line is none.
  EXPECT_EQ(Good(ReadBytes(PdfOf({{{30, 654, "1", 6},
                                   {72, 650, "It was late in the day."}}})))
                .text,
            "1\n\nIt was late in the day.\n");
  // Small print above text of its column is none.
  EXPECT_EQ(Good(ReadBytes(PdfOf({{{72, 650, "It was late in the day"},
                                   {205, 654, "1", 6},
                                   {216, 650, "when they left the house."},
                                   {72, 400, "1 A house.", 7},
                                   {72, 300, "And they left."}}})))
                .text,
            "It was late in the day 1 when they left the house.\n\n1 A "
            "house.\n\nAnd they left.\n");
}

// A page of text that refers to the notes of these numbers, and breaks off in a
// sentence.
Lines PageWithReferences(int first, int last) {
  Lines page;
  for (int i = 0; i < 10; ++i) {
    page.push_back({72, 650 - 12 * i, "and so they went up the hill, and on,"});
    if (first + i > last) continue;
    page.push_back({295, 654 - 12 * i, std::to_string(first + i), 6});
  }
  return page;
}

TEST(PdfTest, ANoteMayHaveASignInPlaceOfANumber) {
  const auto page = [](const std::string& mill, const std::string& road) {
    return Lines{{72, 650, "The mill* is old, and it was always the" + mill},
                 {72, 638, "river+ where they went on the longest day,"},
                 {72, 120, "* It " + road, 7},
                 {72, 110, "burnt in the flood.", 7}};
  };
  EXPECT_EQ(Good(ReadBytes(PdfOf({page(" great", "once"),
                                  {{72, 650, "and on, and on, and home."}}})))
                .text,
            "The mill* is old, and it was always the great river+ where they "
            "went on the longest day, and on, and on, and home.\n\n* It once "
            "burnt in the flood.\n");
}

// Without an outline chapters are those that the text shows.
TEST(PdfTest, NotesStandAtTheEndOfAChapterThatTheTextShows) {
  const auto page = [](const std::string& number) {
    return Lines{{72, 650, "Chapter " + number},
                 {72, 626, "It was late in the day"},
                 {205, 630, number, 6},
                 {216, 626, "when they left the house."},
                 {72, 120, number + " The day is not known.", 7}};
  };
  EXPECT_THAT(Good(ReadBytes(PdfOf({page("1"), page("2")}))).text,
              HasSubstr("[1] The day is not known.\n\nChapter 2"));
}

TEST(PdfTest, APageOfNotesAloneIsTheNotes) {
  const Lines last = {{72, 650, "down to the sea."}};
  Lines notes;
  std::string text;
  for (int number = 2; number < 8; ++number) {
    const std::string words = " By the road of " + std::to_string(number) + ".";
    notes.push_back(
        {72, 760 - 100 * number, std::to_string(number) + words, 7});
    text += "\n\n[" + std::to_string(number) + "]" + words;
  }
  Lines first = PageWithReferences(1, 7);
  first.push_back({72, 98, "1 The day is not known.", 7});
  EXPECT_THAT(Good(ReadBytes(PdfOf({first, notes, last}))).text,
              EndsWith("hill, and on, down to the sea.\n\n[1] The day is not "
                       "known." +
                       text + "\n"));
  // The text before refers to the first of them.
  EXPECT_THAT(
      Good(ReadBytes(PdfOf({PageWithReferences(2, 7), notes, last}))).text,
      EndsWith("hill, and on, down to the sea." + text + "\n"));
  // Small print whose numbers follow none is the text's.
  EXPECT_THAT(Good(ReadBytes(PdfOf({PageWithReferences(9, 9),
                                    {{72, 760, "so that x", 7},
                                     {110, 762, "2", 5},
                                     {115, 760, "is", 7},
                                     {72, 98, "2 is not known.", 7}},
                                    {{72, 650, "They left."}}})))
                  .text,
              EndsWith("\n\n2 is not known.\n\nThey left.\n"));
}

TEST(PdfTest, AListBelowItsHeadingIsNoNote) {
  Lines first = PageWithReferences(1, 1);
  first.push_back({72, 98, "1 The day is not known.", 7});
  // The text of a page whose small print stands below `above`.
  const auto text = [&](int number, const PdfTestLine& above) {
    const std::string begin = std::to_string(number);
    const Lines last = {{72, 700, "down to the sea and to all the islands"},
                        {301, 704, begin, 6},
                        above,
                        {72, 370, begin + " A history of the sea.", 7}};
    return Good(ReadBytes(PdfOf({first, last}))).text;
  };
  const std::string notes = "[1] The day is not known.\n";
  const std::string list = "\n\n1 A history of the sea.\n\n";
  EXPECT_THAT(text(1, {72, 400, "References"}),
              EndsWith("\n\nReferences" + list + notes));
  EXPECT_THAT(text(2, {72, 400, "References", 14}),
              EndsWith("\n\n2 A history of the sea.\n\n" + notes));
  // The last item of a list is no heading.
  EXPECT_THAT(text(2, {72, 400, "- the sea"}),
              EndsWith(notes + "\n[2] A history of the sea.\n"));
}

TEST(PdfTest, NumbersOfVersesStandApart) {
  EXPECT_EQ(Good(ReadBytes(PdfOf({{{72, 654, "1", 6},
                                   {76, 650, "And it was night."},
                                   {184, 654, "2", 6},
                                   {188, 650, "So they left x"},
                                   {272, 654, "2", 6},
                                   {282, 650, "times."}}})))
                .text,
            "1 And it was night. 2 So they left x2 times.\n");
}

TEST(PdfTest, ANoteGoesOnInTheNextColumnAlone) {
  const auto text = [](const std::string& note, const Lines& other) {
    Lines page = TwoColumns();
    page.push_back({60, 110, note, 7});
    page.insert(page.end(), other.begin(), other.end());
    return Good(ReadBytes(PdfOf({page}))).text;
  };
  const std::string unfinished =
      "1 It was built of good oak from the hills above";
  EXPECT_THAT(text(unfinished, {{330, 110, "the river.", 7}}),
              EndsWith("[1] It was built of good oak from the hills above the "
                       "river.\n"));
  EXPECT_THAT(text(unfinished, {{330, 120, "Drum hill, in", 7},
                                {330, 110, "2 It was built of stone.", 7}}),
              EndsWith("above Drum hill, in\n\n[2] It was built of stone.\n"));
  // A caption is none of it, nor is small print behind a line that is short.
  EXPECT_THAT(text(unfinished, {{330, 300, "Plate 2. The mill", 7}}),
              EndsWith("[1] It was built of good oak from the hills above\n"));
  EXPECT_THAT(text("1 See Smith", {{330, 110, "the mill by night", 7}}),
              EndsWith("the mill by night\n\n[1] See Smith\n"));
  // A line at the foot of the page that stands apart is the page's.
  EXPECT_THAT(text("1 It was built of oak.", {{60, 60, "Printed in 1901", 7}}),
              EndsWith("[1] It was built of oak.\n\nPrinted in 1901\n"));
}

TEST(PdfTest, OutlinesHaveTheLabelsOfThePage) {
  const Document document = Good(ReadBytes(
      PdfOf({{{400, 700, "CHAPTER"},
              {420, 670, "ONE"},
              {300, 600, "THE HILL"},
              {72, 500, "1.1 Scope of it"},
              {72, 450, "All of the hill."}},
             {{72, 700, "Some text that is no heading of anything."}}},
            {{"The Hill", 0}, {"Scope of it", 0}, {"Gone", 1}})));
  ASSERT_EQ(document.sections.size(), 3u);
  EXPECT_EQ(document.sections[0].label, "CHAPTER ONE");
  EXPECT_EQ(document.sections[0].begin, 0u);
  EXPECT_EQ(document.sections[1].label, "1.1");
  EXPECT_EQ(document.sections[1].title, "Scope of it");
  EXPECT_EQ(document.text.substr(document.sections[1].begin, 9), "1.1 Scope");
  EXPECT_EQ(document.sections[2].begin, document.pages[1].begin);
}

TEST(PdfTest, ALabelAboveItsTitleIsOfItsSection) {
  const Document document = Good(ReadBytes(
      PdfOf({{{72, 700, "Chapter 1"},
              {72, 688, "Of Wings"},
              {72, 664, "All of the wings, on a line that is longer."}},
             {{72, 700, "Chapter 2"},
              {72, 688, "Of Talons"},
              {72, 664, "All of the talons, on a line that is longer."}}},
            {{"Chapter 1: Of Wings", 0}, {"Chapter 2: Of Talons", 1}})));
  ASSERT_EQ(document.sections.size(), 2u);
  EXPECT_EQ(document.sections[1].label, "Chapter 2");
  EXPECT_EQ(document.sections[1].begin, document.pages[1].begin);
  EXPECT_THAT(document.text, HasSubstr("Chapter 2\nOf Talons\n"));
}

TEST(PdfTest, WithoutAnOutlineTheHeadingsOfTheText) {
  std::vector<Lines> pages;
  for (int i = 1; i <= 3; ++i) {
    Lines lines = {{72, 700, "Chapter " + std::to_string(i)}};
    for (int line = 0; line < 8; ++line) {
      lines.push_back({72, 600 - 12 * line, "It was late when they left."});
    }
    pages.push_back(lines);
  }
  const Document document = Good(ReadBytes(PdfOf(pages)));
  ASSERT_EQ(document.sections.size(), 3u);
  EXPECT_EQ(document.sections[2].label, "Chapter 3");
}

TEST(PdfTest, WrongFiles) {
  EXPECT_EQ(CodeOf(ReadBytes("%PDF-1.4\nnothing")), "invalid_pdf");
  EXPECT_EQ(CodeOf(ReadBytes(PdfOf({}))), "invalid_pdf");
  const Result scan = ReadBytes(PdfOf({{}, {}}));
  EXPECT_EQ(CodeOf(scan), "scanned_document");
  EXPECT_THAT(std::get<Error>(scan).message, HasSubstr("2 pages"));
  const Result locked = ReadBytes(LockedPdf());
  EXPECT_EQ(CodeOf(locked), "encrypted_document")
      << std::get<Error>(locked).message;
}

TEST(PdfTest, SomePagesWithoutTextAreSaid) {
  const Document document =
      Good(ReadBytes(PdfOf({{{72, 700, "It was late."}}, {}, {}})));
  EXPECT_THAT(document.warnings, ElementsAre(HasSubstr("2 of 3 pages")));
}

TEST(PdfTest, WithoutTheProgramsItIsAnError) {
  const std::string path = getenv("PATH");
  setenv("PATH", "/nowhere", 1);
  const Result result = ReadBytes(PdfOf({{{72, 700, "x"}}}));
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(CodeOf(result), "pdf_tools_missing");
  EXPECT_THAT(std::get<Error>(result).message, HasSubstr("poppler-utils"));
}

TEST(PdfLayoutTest, PagesComeInPieces) {
  const std::string xml =
      "<html><head><title>A &amp; B</title><meta name=\"Author\" "
      "content=\"C\"/></head><body><doc><page width=\"10\" height=\"20\"><flow>"
      "<block xMin=\"1\" yMin=\"2\" xMax=\"3\" yMax=\"4\"><line xMin=\"1\" "
      "yMin=\"2\" xMax=\"3\" yMax=\"4\"><word xMin=\"1\" yMin=\"2\" xMax=\"3\" "
      "yMax=\"4\">o\uFB03ce</word></line></block></flow></page><page "
      "width=\"10\" height=\"20\"></page></doc>";
  for (const size_t piece : {size_t{1}, size_t{7}, xml.size()}) {
    PdfLayoutReader reader;
    for (size_t at = 0; at < xml.size(); at += piece) {
      reader.Add(std::string_view(xml).substr(at, piece));
    }
    EXPECT_EQ(reader.title(), "A & B");
    EXPECT_EQ(reader.author(), "C");
    const std::vector<PdfPage> pages = reader.TakePages();
    ASSERT_EQ(pages.size(), 2u) << piece;
    EXPECT_EQ(pages[0].blocks[0].lines[0].words[0].text, "office");
    EXPECT_EQ(pages[0].blocks[0].lines[0].words[0].box.bottom, 4);
    EXPECT_THAT(pages[1].blocks, IsEmpty());
  }
}

TEST(PdfTest, ADropCapJoinsItsWord) {
  const auto page = [](const std::string& cap, const std::string& word) {
    return Lines{{110, 700, word + " mill stood still, and all was as it was"},
                 {110, 688, "long before the river came to it, far away."},
                 {72, 676, "No one knew why the lamps were lit so early then"},
                 {72, 678, cap, 40}};
  };
  const Document document = Good(
      ReadBytes(PdfOf({page("T", "he"), page("A", "great"), page("A", "nd")})));
  EXPECT_THAT(document.text, HasSubstr("The mill stood"));
  EXPECT_THAT(document.text, HasSubstr("A great mill stood"));
}

TEST(PdfTest, PagesWithoutTextAreListed) {
  const auto warnings_of = [](const std::string& pages) {
    std::vector<Lines> lines;
    for (const char page : pages) {
      lines.emplace_back();
      if (page == '-') continue;
      lines.back().push_back(
          {72, 400, std::string("It was late in the day of ") + page + "."});
    }
    return Good(ReadBytes(PdfOf(lines))).warnings;
  };
  EXPECT_THAT(warnings_of("a--bc-def"),
              ElementsAre("3 of 9 pages have no text: 2-3, 6"));
  EXPECT_THAT(warnings_of("a-bcdefghijkl-"), IsEmpty());
}

TEST(PdfTest, TitlesThatAProgramMadeUpAreNone) {
  const std::vector<Lines> pages = {{{72, 700, "Some text."}}};
  const auto title_of = [&](const std::string& title) {
    return Good(ReadBytes(
        PdfOf(pages, {}, "/Info << /Title (" + title + ") /Author (user) >>")));
  };
  for (const char* title :
       {"untitled", "Microsoft Word - x.doc", "Book.indd", "Untitled"}) {
    EXPECT_EQ(title_of(title).title, "") << title;
  }
  EXPECT_EQ(title_of("The Mill").title, "The Mill");
  EXPECT_EQ(title_of("The Mill").author, "");
}

TEST(PdfTest, AnItemThatLeadsNowhereIsFoundByItsTitleOrSaid) {
  std::vector<Lines> pages;
  for (int i = 1; i <= 4; ++i) {
    pages.push_back({{72, 700, "Chapter " + std::to_string(i), 16},
                     {72, 600, "It was late in the day when they left."}});
  }
  std::string pdf = PdfOf(
      pages,
      {{"Chapter 1", 0}, {"Chapter 2", 1}, {"Chapter 9", 1}, {"Chapter 4", 3}});
  // The places of the second and the third are taken away.
  for (const char* title : {"(Chapter 2)", "(Chapter 9)"}) {
    const size_t place = pdf.find("/Dest", pdf.find(title));
    pdf.replace(place, 5, "/Dead");
  }
  const Document document = Good(ReadBytes(pdf));
  std::string labels;
  for (const Section& section : document.sections) {
    labels +=
        section.label + "|" + document.text.substr(section.begin, 9) + "\n";
  }
  EXPECT_EQ(labels,
            "Chapter 1|Chapter 1\nChapter 2|Chapter 2\nChapter 4|Chapter 4\n");
  EXPECT_THAT(document.warnings,
              ElementsAre("1 entries of the outline lead nowhere: Chapter 9"));
}

TEST(PdfLabelsTest, RangesHaveStylesPrefixesAndStarts) {
  const std::string tree = "<< /Kids [5 0 R 6 0 R] >>";
  const std::string first =
      "<< /Limits [0 2] /Nums [0 << /S /r >> 2 << /S /D /St 7 >>] >>";
  const std::string second =
      "<< /Nums [4 7 0 R 6 << /P (end) >> 7 << /S /a /St 26 >>] >>";
  const std::string range = "<< /P (A\\)-) /S /R >>";
  const std::string plain = "%PDF-1.4\n1 0 obj << /Type /Catalog /PageLabels " +
                            tree + " >> endobj\n5 0 obj " + first +
                            " endobj 6 0 obj " + second + " endobj 7 0 obj " +
                            range + " endobj";
  const auto labels =
      ElementsAre("i", "ii", "7", "8", "A)-I", "A)-II", "end", "z", "aa");
  EXPECT_THAT(PdfPageLabels(plain, 9), labels);
  // Most files have such objects in an object stream.
  std::string objects = "<< /PageLabels " + tree + " >> ";
  const std::string index[] = {first, second, range};
  std::string head = "1 0 ";
  for (int i = 0; i < 3; ++i) {
    head += std::to_string(5 + i) + " " + std::to_string(objects.size()) + " ";
    objects += index[i] + " ";
  }
  const std::string text = head + objects;
  std::string packed(compressBound(text.size()), '\0');
  uLongf size = packed.size();
  ASSERT_EQ(compress(reinterpret_cast<Bytef*>(packed.data()), &size,
                     reinterpret_cast<const Bytef*>(text.data()), text.size()),
            Z_OK);
  packed.resize(size);
  EXPECT_THAT(PdfPageLabels("%PDF-1.5\n9 0 obj << /Type /ObjStm /Filter "
                            "/FlateDecode >> stream\r\n" +
                                packed + "\nendstream endobj",
                            9),
              labels);
}

TEST(PdfLabelsTest, WhatIsNotUnderstoodHasNone) {
  EXPECT_THAT(PdfPageLabels("", 3), IsEmpty());
  EXPECT_THAT(PdfPageLabels("/PageLabels 5 0 R", 3), IsEmpty());
  EXPECT_THAT(PdfPageLabels("/PageLabels << /Nums [ 3 << /S /D >> ] >>", 5),
              IsEmpty());
  EXPECT_THAT(
      PdfPageLabels("/Encrypt /PageLabels << /Nums [0 << /S /r >>] >>", 5),
      IsEmpty());
  // A tree that contains itself ends.
  EXPECT_THAT(PdfPageLabels("5 0 obj << /Kids [5 0 R 5 0 R] >> endobj "
                            "/PageLabels 5 0 R",
                            3),
              IsEmpty());
}

TEST(PdfLayoutTest, HyphensOfAllKindsAreHyphens) {
  PdfLayoutReader reader;
  reader.Add(
      "<doc><page><flow><block><line><word>re\u00ADmem\u00AD</word></line>"
      "<line><word>well\u2010known</word></line></block></flow></page></doc>");
  const std::vector<PdfPage> pages = reader.TakePages();
  ASSERT_EQ(pages.size(), 1u);
  EXPECT_EQ(pages[0].blocks[0].lines[0].words[0].text, "remem-");
  EXPECT_EQ(pages[0].blocks[0].lines[1].words[0].text, "well-known");
}

TEST(PdfLayoutTest, OutlinesNest) {
  const auto items = ReadPdfOutline(
      "<pdf2xml><page><text><b>broken</text></page> link to page 3 <outline>"
      "<item page=\"1\">One</item><outline><item page=\"2\">A &lt; B</item>"
      "</outline><item page=\"9\">Two</item><item page=\"0\">no page</item>"
      "</outline></pdf2xml>");
  ASSERT_EQ(items.size(), 4u);
  EXPECT_EQ(items[3].page, std::nullopt);
  EXPECT_EQ(items[1].level, 2);
  EXPECT_EQ(items[1].text, "A < B");
  EXPECT_EQ(items[2].page, 8u);
  EXPECT_THAT(ReadPdfOutline("no outline"), IsEmpty());
}

}  // namespace
}  // namespace tiercel::document
