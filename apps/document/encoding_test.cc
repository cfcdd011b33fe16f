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
  // The first and the last of every length, and those beside the surrogates.
  for (const char* good : {"\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80",
                           "\xED\x9F\xBF", "\xEE\x80\x80", "\xEF\xBF\xBF",
                           "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(IsUtf8(good)) << testing::PrintToString(good);
  }
  for (const char* bad :
       {"\x80", "\xC3", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80",
        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82",
        "\xFF", "\xE2\x82\x41", "\xE2\x82\xC0", "\xF0\x90\x80\x41",
        "\xC2\x41"}) {
    EXPECT_FALSE(IsUtf8(bad)) << testing::PrintToString(bad);
  }
}

TEST(EncodingTest, UnknownBytesAreWindows1252WithAWarning) {
  std::vector<std::string> warnings;
  EXPECT_EQ(ToUtf8("caf\xE9 \x80 \x93q\x94", Charset::kUnknown, &warnings),
            "café € “q”");
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("Windows-1252")));
}

TEST(EncodingTest, EveryByteOfWindows1252) {
  std::string high;
  for (int byte = 0x80; byte < 0xA0; ++byte) {
    high.push_back(static_cast<char>(byte));
  }
  std::vector<std::string> warnings;
  EXPECT_EQ(ToUtf8(high, Charset::kWindows1252, &warnings),
            "€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ");
  EXPECT_EQ(ToUtf8("\x7F\xA0\xFF", Charset::kWindows1252, &warnings),
            "\x7F\u00A0ÿ");
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(EncodingTest, AppendUtf8TakesTheFewestBytes) {
  for (const auto& [code_point, bytes] : {std::pair(0x7Fu, 1u),
                                          {0x80u, 2u},
                                          {0x7FFu, 2u},
                                          {0x800u, 3u},
                                          {0xFFFFu, 3u},
                                          {0x10000u, 4u},
                                          {0x10FFFFu, 4u}}) {
    std::string text;
    AppendUtf8(code_point, &text);
    EXPECT_EQ(text.size(), bytes) << code_point;
    EXPECT_TRUE(IsUtf8(text)) << code_point;
  }
}

TEST(EncodingTest, ControlsAreThoseThatNoTextHas) {
  std::string text = "a\x01\x08\t\n\v\f\r\x0E\x1F ~\x7F\xC2\x80";
  EXPECT_EQ(ReplaceControls(&text), 5u);
  EXPECT_EQ(text, "a  \t\n\v\f\r   ~ \xC2\x80");
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
  // What follows a high one is beyond the low ones.
  EXPECT_EQ(ToUtf8("\x3D\xD8\x01\xE0", Charset::kUtf16Le, &warnings),
            "\xEF\xBF\xBD\xEE\x80\x81");
}

TEST(EncodingTest, ByteOrderMarks) {
  EXPECT_EQ(FindByteOrderMark("\xEF\xBB\xBFx").charset, Charset::kUtf8);
  EXPECT_EQ(FindByteOrderMark("\xFF\xFEx").charset, Charset::kUtf16Le);
  EXPECT_EQ(FindByteOrderMark("\xFE\xFFx").charset, Charset::kUtf16Be);
  EXPECT_EQ(FindByteOrderMark({"\xFF\xFE\0\0x", 5}).charset, Charset::kUtf32);
  EXPECT_EQ(FindByteOrderMark({"\0\0\xFE\xFFx", 5}).charset, Charset::kUtf32);
  EXPECT_EQ(FindByteOrderMark({"\xFF\xFE\0x", 4}).charset, Charset::kUtf16Le);
  EXPECT_EQ(FindByteOrderMark("\xEF\xBB").charset, Charset::kUnknown);
  EXPECT_EQ(FindByteOrderMark("").bytes, 0u);
}

TEST(EncodingTest, LabelsAsBrowsersReadThem) {
  for (const char* utf8 : {"UTF-8", "utf8", "Unicode-1-1-UTF-8"}) {
    EXPECT_EQ(CharsetOfLabel(utf8), Charset::kUtf8) << utf8;
  }
  for (const char* latin :
       {"ISO-8859-1", "iso8859-1", "iso_8859-1", "ISO88591", "latin1", "l1",
        "Windows-1252", "cp1252", "x-cp1252", "us-ascii", "ascii"}) {
    EXPECT_EQ(CharsetOfLabel(latin), Charset::kWindows1252) << latin;
  }
  EXPECT_EQ(CharsetOfLabel("shift_jis"), Charset::kUnknown);
}

TEST(EncodingTest, LineEndsBecomeUnix) {
  EXPECT_EQ(WithUnixLineEnds("a\r\nb\rc\nd\r\r\n\r"), "a\nb\nc\nd\n\n\n");
  EXPECT_EQ(WithUnixLineEnds(""), "");
}

}  // namespace
}  // namespace tiercel::document
