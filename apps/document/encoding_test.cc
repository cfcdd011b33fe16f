#include "apps/document/encoding.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tiercel::document {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(EncodingTest, Utf8IsShortestFormWithoutSurrogates) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"));
  EXPECT_TRUE(IsUtf8("\xF4\x8F\xBF\xBF"));  // U+10FFFF
  for (const char* bad :
       {"\x80", "\xC3", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80",
        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82",
        "\xFF"}) {
    EXPECT_FALSE(IsUtf8(bad)) << testing::PrintToString(bad);
  }
}

TEST(EncodingTest, UnknownBytesAreWindows1252WithAWarning) {
  std::vector<std::string> warnings;
  EXPECT_EQ(ToUtf8("caf\xE9 \x80 \x93q\x94", Charset::kUnknown, &warnings),
            "café € “q”");
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("Windows-1252")));
}

TEST(EncodingTest, ValidUtf8NeedsNoWarning) {
  std::vector<std::string> warnings;
  EXPECT_EQ(ToUtf8("café", Charset::kUnknown, &warnings), "café");
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(EncodingTest, InvalidBytesOfDeclaredUtf8AreReplacedAndCounted) {
  std::vector<std::string> warnings;
  EXPECT_EQ(ToUtf8("a\xFF"
                   "b\xC3",
                   Charset::kUtf8, &warnings),
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD");
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("2 invalid")));
}

TEST(EncodingTest, Utf16InBothByteOrders) {
  std::vector<std::string> warnings;
  const std::string little("a\0\xE9\0\x3D\xD8\x00\xDE", 8);
  const std::string big("\0a\0\xE9\xD8\x3D\xDE\x00", 8);
  EXPECT_EQ(ToUtf8(little, Charset::kUtf16Le, &warnings), "aé😀");
  EXPECT_EQ(ToUtf8(big, Charset::kUtf16Be, &warnings), "aé😀");
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(EncodingTest, LoneSurrogatesAndHalfUnitsAreReplaced) {
  std::vector<std::string> warnings;
  // low alone; high before a letter; high at the end; half a unit
  const std::string bytes(
      "\x00\xDC\x3D\xD8"
      "a\0\x3D\xD8z",
      9);
  EXPECT_EQ(ToUtf8(bytes, Charset::kUtf16Le, &warnings),
            "\xEF\xBF\xBD\xEF\xBF\xBD"
            "a\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("4 invalid")));
}

TEST(EncodingTest, ByteOrderMarks) {
  EXPECT_EQ(FindByteOrderMark("\xEF\xBB\xBFx").charset, Charset::kUtf8);
  EXPECT_EQ(FindByteOrderMark("\xFF\xFEx").charset, Charset::kUtf16Le);
  EXPECT_EQ(FindByteOrderMark("\xFE\xFFx").charset, Charset::kUtf16Be);
  EXPECT_EQ(FindByteOrderMark("\xEF\xBB").charset, Charset::kUnknown);
  EXPECT_EQ(FindByteOrderMark("").bytes, 0u);
}

TEST(EncodingTest, LabelsAsBrowsersReadThem) {
  EXPECT_EQ(CharsetOfLabel("UTF-8"), Charset::kUtf8);
  EXPECT_EQ(CharsetOfLabel("ISO-8859-1"), Charset::kWindows1252);
  EXPECT_EQ(CharsetOfLabel("latin1"), Charset::kWindows1252);
  EXPECT_EQ(CharsetOfLabel("shift_jis"), Charset::kUnknown);
}

TEST(EncodingTest, LineEndsBecomeUnix) {
  EXPECT_EQ(WithUnixLineEnds("a\r\nb\rc\nd\r\r\n\r"), "a\nb\nc\nd\n\n\n");
  EXPECT_EQ(WithUnixLineEnds(""), "");
}

}  // namespace
}  // namespace tiercel::document
