#include "lib/documents/pdf.h"

#include <signal.h>
#include <stdlib.h>

#include <string>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/documents/document.h"
#include "lib/documents/document_for_test.h"
#include "lib/documents/pdf_for_test.h"
#include "lib/documents/pdf_layout.h"

namespace tiercel::document {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Lines = std::vector<PdfTestLine>;

Result ReadBytes(const std::string& bytes) {
  return ReadDocumentBytes("book", bytes);
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

TEST(PdfTest, HeadsAndPageNumbersAreDropped) {
  const Document document = Good(ReadBytes(PdfOf(
      {PageOf("THE HILL", "It was late in the day when they left the houses,",
              "5"),
       PageOf("THE HILL", "It was late in the year when they had come to it,",
              "6"),
       PageOf("THE HILL", "It was late in the war when they had heard of it,",
              "7")})));
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
  const std::string pdf = PdfOf({PageOf("Rain", "It rained, they said,", "5")},
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

TEST(PdfTest, ALineThatStandsOnceIsNoHead) {
  const Document document = Good(
      ReadBytes(PdfOf({PageOf("Chapter 1", "a", "x"), PageOf("Rain", "b", "y"),
                       PageOf("Chapter 2", "c", "z")})));
  EXPECT_THAT(document.text, HasSubstr("Rain"));
  EXPECT_THAT(document.text, HasSubstr("Chapter 2"));
}

TEST(PdfTest, BrokenWordsAreJoined) {
  const Document document = Good(ReadBytes(
      PdfOf({{{72, 700, "The lighthouse and the well-known road to the light-"},
              {72, 688, "house were a well-"},
              {72, 676, "known place for us all, and for every last mari-"},
              {72, 664, "ner on the whole long coast. We read of Anne-"},
              {72, 652, "Marie, too, in those old and yellow newspapers."}}})));
  EXPECT_EQ(document.text,
            "The lighthouse and the well-known road to the lighthouse were a "
            "well-known place for us all, and for every last mariner on the "
            "whole long coast. We read of Anne-Marie, too, in those old and "
            "yellow newspapers.\n");
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

TEST(PdfLayoutTest, OutlinesNest) {
  const auto items = ReadPdfOutline(
      "<pdf2xml><page><text><b>broken</text></page> link to page 3 <outline>"
      "<item page=\"1\">One</item><outline><item page=\"2\">A &lt; B</item>"
      "</outline><item page=\"9\">Two</item><item page=\"0\">no page</item>"
      "</outline></pdf2xml>");
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[1].level, 2);
  EXPECT_EQ(items[1].text, "A < B");
  EXPECT_EQ(items[2].page, 8u);
  EXPECT_THAT(ReadPdfOutline("no outline"), IsEmpty());
}

}  // namespace
}  // namespace tiercel::document
