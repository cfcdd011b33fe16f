#include "lib/documents/rtf.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/documents/document_for_test.h"

namespace tiercel::document {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Document ReadRtfText(const std::string& rtf) {
  return Good(ReadDocumentBytes("a.rtf", rtf));
}
std::string TextOfRtf(const std::string& body) {
  return ReadRtfText("{\\rtf1\\ansi\\ansicpg1252\\deff0 " + body + "}").text;
}

TEST(RtfTest, WordsAndControls) {
  EXPECT_EQ(TextOfRtf("a\\b  bold\\b0  c\r\nd\\par e\\line f\\tab g\\par"),
            "a bold cd\n\ne\nf g\n");
  EXPECT_EQ(TextOfRtf("\\{a\\}\\\\b \\~ c\\-d e\\_f\\emdash\\ldblquote x"),
            "{a}\\b cd e\u2011f—“x\n");
  EXPECT_EQ(TextOfRtf("a\\\nb\\page c\\sect d"), "a\n\nb\n\nc\n\nd\n");
  EXPECT_EQ(TextOfRtf("a\\par\\par b"), "a\n\n\nb\n");
  EXPECT_EQ(TextOfRtf("a \\v hidden\\v0 b {\\deleted gone}c \\v d\\plain e"),
            "a b c e\n");
  EXPECT_EQ(TextOfRtf(""), "");
}

TEST(RtfTest, WhatIsNoText) {
  EXPECT_EQ(TextOfRtf("{\\colortbl;\\red1;}{\\*\\generator W;}{\\header h\\par}"
                      "{\\pict\\pngblip 8950}a{\\*\\unknown{x}y}b"
                      "{\\field{\\*\\fldinst HYPERLINK \"x\"}{\\fldrslt link}}"
                      "{\\field{\\fldinst PAGE}{\\fldrslt 1}}{\\xe{\\v c}}"),
            "ablink1\n");
  // Binary bytes may be anything, also in what is left out.
  EXPECT_EQ(TextOfRtf(std::string("a{\\pict\\bin5 }}{\\\0}b\\bin2 }}c", 29)),
            "abc\n");
  EXPECT_EQ(TextOfRtf("a\\bin99999999999 b"), "a\n");
}

TEST(RtfTest, BoxesStandBelowTheirParagraph) {
  const std::string box =
      "{\\shp{\\*\\shpinst\\shpleft0{\\sp{\\sn shapeType}{\\sv 202}}"
      "{\\shptxt\\pard\\plain In {\\b the}\\cell box.\\par Two.\\par}}"
      "{\\shprslt{\\*\\do\\dptxbx{\\dptxbxtext\\pard again\\par}}}}";
  EXPECT_EQ(TextOfRtf("a" + box + "b\\par c"),
            "ab\n\nIn the\n\nbox.\n\nTwo.\n\nc\n");
  EXPECT_EQ(TextOfRtf("a{\\*\\do\\dptxbx{\\dptxbxtext\\pard old}}b"),
            "ab\n\nold\n");
  // Shapes may be grouped.
  EXPECT_EQ(TextOfRtf("a{\\shpgrp{\\*\\shpinst" + box + "}}"),
            "a\n\nIn the\n\nbox.\n\nTwo.\n");
  EXPECT_EQ(TextOfRtf("a{\\shp{\\*\\shpinst{\\sp{\\sn x}{\\sv 1}}}}b"), "ab\n");
}

TEST(RtfTest, CharactersOfCodePagesAndFonts) {
  EXPECT_EQ(TextOfRtf("caf\\'e9 \\'93x\\'94 \\'zz"), "café “x” zz\n");
  EXPECT_EQ(ReadRtfText("{\\rtf1\\ansi\\ansicpg1251 \\'cf\\'f0\\'e8}").text,
            "При\n");
  EXPECT_EQ(ReadRtfText("{\\rtf1\\mac \\'8e}").text, "é\n");
  EXPECT_EQ(ReadRtfText(
                "{\\rtf1\\ansi{\\fonttbl{\\f0\\fcharset0 A;}{\\f1\\fcharset204 "
                "B;}{\\f2\\fcharset128 C;}{\\f3 D;}}\\f1\\'cf{\\f0\\'e9}\\'f0"
                "\\f2 \\'83A\\f3\\'e9\\plain x}")
                .text,
            "Пéрアéx\n");
  // Some writers leave out the escapes.
  EXPECT_EQ(TextOfRtf("é"), "é\n");
  EXPECT_EQ(TextOfRtf("\xE9t\xE9"), "été\n");
  const Document invalid =
      ReadRtfText("{\\rtf1\\ansi\\ansicpg932 \\'83\\'20 \\'e9\\b\\'e9}");
  EXPECT_THAT(invalid.text, HasSubstr("\uFFFD"));
  EXPECT_THAT(invalid.warnings, ElementsAre(HasSubstr("U+FFFD")));
}

TEST(RtfTest, UnicodeAndItsSubstitutes) {
  EXPECT_EQ(TextOfRtf("\\u8212?\\u-10179?\\u-8704?x"), "—😀x\n");
  EXPECT_EQ(TextOfRtf("\\u8212\\'97b\\uc0\\u8212 b{\\uc2\\u8212 ab\\u8212"
                      "\\'61\\'62}\\u8212 b"),
            "—b—b———b\n");
  // A writer that gives no substitute, and groups, which end it.
  EXPECT_EQ(TextOfRtf("\\u1055\\u1088 \\u8212{a}"), "Пр—a\n");
  EXPECT_EQ(TextOfRtf("\\u8212\\b b"), "—b\n");
  EXPECT_EQ(TextOfRtf("\\u-8704?a\\u55357?b"), "\uFFFDab\n");
  EXPECT_EQ(TextOfRtf("\\u61623?"), "·\n");
}

TEST(RtfTest, TitleAuthorAndLanguage) {
  const Document document = ReadRtfText(
      "{\\rtf1\\ansi\\deflang1033{\\info{\\title A \\'93B\\'94}{\\subject x}"
      "{\\author {\\upr{Wr?ter}{\\*\\ud Wr\\u237?ter}}}{\\creatim\\yr2000}}"
      "\\lang1031 Ein Text auf Deutsch. \\lang1024 x\\lang1036 mot}");
  EXPECT_EQ(document.title + "|" + document.author + "|" + document.language,
            "A “B”|Wríter|de");
  EXPECT_EQ(document.text, "Ein Text auf Deutsch. xmot\n");
  EXPECT_EQ(ReadRtfText("{\\rtf1\\deflang1049 x}").language, "ru");
  EXPECT_EQ(ReadRtfText("{\\rtf1 x}").language, "");
  EXPECT_EQ(
      ReadRtfText("{\\rtf1\\ansi{\\info{\\upr{\\title A?}{\\*\\ud{\\title "
                  "A\\u233?}}}}x}")
          .title,
      "Aé");
}

const char kRtfStyles[] =
    "{\\rtf1\\ansi{\\stylesheet{\\s0 Normal;}{\\s1\\outlinelevel0\\sbasedon0 "
    "heading 1;}{\\s2 Heading 2;}{\\s5\\sbasedon2 Own;}{\\s6\\outlinelevel2 "
    "Third;}{\\s7\\outlinelevel9\\sbasedon1 TOC Heading;}{\\s8 Title;}"
    "{\\*\\cs9 heading 1;}}";

std::string TreeOfRtf(const Document& document) {
  std::string tree;
  for (const Section& section : document.sections) {
    tree += std::to_string(section.level) + " " + section.label + "|" +
            section.title + "@" + document.text.substr(section.begin, 2) + "\n";
  }
  return tree;
}

TEST(RtfTest, HeadingsAreOfStylesAndOutlineLevels) {
  const Document document = ReadRtfText(
      std::string(kRtfStyles) +
      "\\pard\\s8 My Book\\par\\pard\\s7 Before\\par"
      "\\pard\\plain\\s1{\\b Chapter 1}\\line The Mill\\par\\pard text\\par"
      "\\pard\\s5 A\\par\\pard x\\par{\\pard\\s6 B\\par}\\pard y\\par"
      "\\pard\\outlinelevel0 Chapter 2. C\\chftn{\\footnote\\pard\\chftn "
      "Note.}\\par\\pard\\s2\\outlinelevel9 text\\par\\s2\\par}");
  EXPECT_EQ(document.title, "My Book");
  EXPECT_EQ(TreeOfRtf(document),
            "1 Chapter 1|The Mill@Ch\n2 |A@A\n\n3 |B@B\n\n1 Chapter 2|C@Ch\n");
  EXPECT_EQ(
      document.text,
      "My Book\n\nBefore\n\nChapter 1\nThe Mill\n\ntext\n\nA\n\nx\n\nB\n\n"
      "y\n\nChapter 2. C[1]\n\n[1] Note.\n\ntext\n");
  EXPECT_THAT(document.warnings, IsEmpty());
}

TEST(RtfTest, WithoutStylesHeadingsAreThoseOfATextAlone) {
  std::string rtf = "{\\rtf1\\ansi ";
  for (const char* chapter : {"1", "2", "3"}) {
    rtf += std::string("\\pard\\qc\\b Chapter ") + chapter +
           "\\par\\pard\\b0 It was the way of the wind there to turn at night, "
           "and to rest, and in the morning it rained on all of them.\\par";
  }
  EXPECT_EQ(TreeOfRtf(ReadRtfText(rtf + "}")),
            "1 Chapter 1|@Ch\n1 Chapter 2|@Ch\n1 Chapter 3|@Ch\n");
}

TEST(RtfTest, CellsOfTables) {
  EXPECT_EQ(TextOfRtf("a\\par\\trowd\\pard\\intbl b\\cell c\\cell\\row\\trowd"
                      "\\pard\\intbl \\cell d\\cell\\row\\pard e"),
            "a\n\nb | c\n| d\n\ne\n");
}

TEST(RtfTest, WhatIsHostileOrCut) {
  std::string deep = "{\\rtf1 ";
  for (int i = 0; i < 900; ++i) deep += "{";
  EXPECT_EQ(ReadRtfText(deep + "x").text, "x\n");
  EXPECT_THAT(ReadRtfText(deep + "x").warnings,
              ElementsAre(HasSubstr("ends within")));
  for (int i = 0; i < 1'000'000; ++i) deep += "{";
  EXPECT_EQ(CodeOf(ReadDocumentBytes("a", deep)), "rtf_too_complex");
  EXPECT_EQ(ReadRtfText("{\\rtf1 a}b}{c").text, "a\n");
  EXPECT_EQ(Good(ReadRtf("a", "}b\\u{\\rtf1 a}")).text, "a\n");
  for (const char* cut : {"{\\rtf", "{\\rtf1", "{\\rtf1\\", "{\\rtf1\\'",
                          "{\\rtf1 \\u", "{\\rtf1 \\bin", "{\\rtf1 \\*"}) {
    EXPECT_EQ(ReadRtfText(cut).text, "") << cut;
  }
  EXPECT_THAT(
      ReadRtfText("{\\rtf1 \\u99999999999?\\uc-5 x\\s-7 y\\fs999999999999 z}")
          .text,
      HasSubstr("xyz"));
}

}  // namespace
}  // namespace tiercel::document
