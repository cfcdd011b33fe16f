#include "lib/reader/plain_form.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tiercel::reader {
namespace {

TEST(PlainFormTest, WhatTypesettingChangesIsTheSame) {
  for (const auto& [source, plain] : {
           std::pair("a b", "a b"),
           std::pair("a\u00A0b\u3000\n\n c\u2009", "a b c "),
           std::pair("to\u00ADday\u200B\uFEFF", "today"),
           std::pair("“a” „b“ «c» \"d\"", "'a' 'b' 'c' 'd'"),
           std::pair("it’s ʼtis `so´ ‹x›", "it's 'tis 'so' 'x'"),
           std::pair("a—b a – b a--b a‐\nb", "a-b a-b a-b a-b"),
           std::pair("− — x", "-x"),
           std::pair("wait… wait . . . wait.. .", "wait... wait... wait..."),
           std::pair("Non ! Si\u202F?", "Non! Si?"),
           std::pair("_very_ **much**", "very much"),
           std::pair("ﬁﬂ", "fifl"),
           std::pair("é", "e\u0301"),
           std::pair("だ、Ａ", "た\u3099、A"),
       }) {
    EXPECT_EQ(PlainForm(source).text(), plain) << source;
  }
}

TEST(PlainFormTest, BytesThatAreNoTextStayApart) {
  EXPECT_EQ(PlainForm("\xE2\x80").text(), "\uFFFD\uFFFD");
  EXPECT_EQ(PlainForm("").SourceOf(0), 0u);
  EXPECT_EQ(PlainForm("").IndexOf(0), 0u);
}

TEST(PlainFormTest, PlacesAreThoseOfTheCharacters) {
  const std::string source = "a\u00A0 \n—  b\u00ADé ﬁ.";
  const PlainForm form(source);
  ASSERT_EQ(form.text(), "a-be\u0301 fi.");
  EXPECT_EQ(form.SourceOf(0), 0u);
  EXPECT_EQ(form.SourceOf(1), 1u);  // the blanks, too
  EXPECT_EQ(source.substr(form.SourceOf(2), 1), "b");
  EXPECT_EQ(source.substr(form.SourceOf(3), 2), "é");
  EXPECT_EQ(form.SourceOf(4), form.SourceOf(3));  // its accent
  EXPECT_EQ(form.SourceOf(8), form.SourceOf(7));  // the same ligature
  EXPECT_EQ(form.SourceOf(form.text().size()), source.size());
}

TEST(PlainFormTest, PlacesInALongTextAreThoseOfAShortOne) {
  std::string source;
  for (int i = 0; i < 2000; ++i) {
    source += "Zeile " + std::to_string(i) + " — „ü“ . . .\n\n";
  }
  const PlainForm form(source);
  for (const int i : {0, 1, 700, 1999}) {
    const std::string name = "eile " + std::to_string(i) + "-";
    const size_t index = form.text().find(name);
    const size_t place = source.find("eile " + std::to_string(i) + " ");
    ASSERT_NE(index, std::string::npos);
    EXPECT_EQ(form.SourceOf(index), place);
    EXPECT_EQ(form.SourceOf(index + name.size() - 1), place + name.size() - 1);
    EXPECT_EQ(form.IndexOf(place), index);
  }
  EXPECT_EQ(form.IndexOf(source.size()), form.text().size());
}

}  // namespace
}  // namespace tiercel::reader
