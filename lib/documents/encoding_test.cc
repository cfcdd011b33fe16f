#include "lib/documents/encoding.h"

#include <iconv.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tiercel::document {
namespace {

// Converts `text` from UTF-8 to another charset.
std::string FromUtf8For(const char* charset, std::string text) {
  const iconv_t converter = iconv_open(charset, "UTF-8");
  std::string bytes(4 * text.size() + 16, '\0');
  char* in = text.data();
  char* out = bytes.data();
  size_t in_left = text.size();
  size_t out_left = bytes.size();
  const bool is_good =
      iconv(converter, &in, &in_left, &out, &out_left) != size_t(-1) &&
      iconv(converter, nullptr, nullptr, &out, &out_left) != size_t(-1);
  iconv_close(converter);
  bytes.resize(is_good ? bytes.size() - out_left : 0);
  return bytes;
}

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(EncodingTest, Utf8IsShortestFormWithoutSurrogates) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"));
  // These are the first and last of every length, and the neighbours of the
  // surrogates.
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

TEST(EncodingTest, FewUnknownBytesAreWindows1252WithAWarning) {
  std::vector<std::string> warnings;
  EXPECT_EQ(ToUtf8("caf\xE9 \x93q\x94", "", &warnings), "café “q”");
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("WINDOWS-1252")));
}

TEST(EncodingTest, CharsetsAreGuessed) {
  struct Case {
    const char* charset;
    const char* text;
  };
  for (const Case& c :
       {Case{"KOI8-R", "Все счастливые семьи похожи друг на друга."},
        {"WINDOWS-1251", "Все счастливые семьи похожи друг на друга."},
        {"CP932", "吾輩は猫である。名前はまだ無い。"},
        {"EUC-JP", "吾輩は猫である。名前はまだ無い。"},
        {"ISO-2022-JP", "吾輩は猫である。名前はまだ無い。"},
        {"GB18030", "道可道，非常道。名可名，非常名。"},
        {"BIG5-HKSCS", "道可道，非常道。無名天地之始，有名萬物之母。"},
        {"WINDOWS-1252", "Die Häuser waren groß, und schöne Grüße blieben."}}) {
    const std::string bytes = FromUtf8For(c.charset, c.text);
    ASSERT_FALSE(bytes.empty()) << c.charset;
    EXPECT_EQ(GuessCharset(bytes), c.charset);
    std::vector<std::string> warnings;
    EXPECT_EQ(ToUtf8(bytes, "", &warnings), c.text) << c.charset;
    EXPECT_THAT(warnings, ElementsAre(HasSubstr(c.charset)));
  }
}

TEST(EncodingTest, OfTwoCharsetsThatAreAlikeTheOneWithWordsIsTaken) {
  const char kCzech[] =
      "Přišel pozdě, když už hořely lampy; šťastně seděl u řeky a čekal. Žádný "
      "muž z té vsi neměl tak těžkou odpověď: příští zimu přeji vám štěstí. "
      "Žil tam dál s tetou Růženou, a když ťukal do dřeva, zněl ještě hlas.";
  const char kUkrainian[] =
      "Її хата стояла край села, і вітер шумів у вербах. Він пішов до річки, "
      "щоб ще раз побачити воду; її голос і досі звучав над полем.";
  const std::pair<const char*, const char*> kCases[] = {
      {"ISO-8859-2", kCzech}, {"WINDOWS-1250", kCzech}, {"KOI8-U", kUkrainian}};
  for (const auto& [charset, text] : kCases) {
    const std::string bytes = FromUtf8For(charset, text);
    ASSERT_FALSE(bytes.empty()) << charset;
    EXPECT_EQ(GuessCharset(bytes), charset);
    std::vector<std::string> warnings;
    EXPECT_EQ(ToUtf8(bytes, "", &warnings), text) << charset;
  }
}

TEST(EncodingTest, Utf16WithoutAMarkIsKnownByItsLineEnds) {
  // The ideographic space and U+4E00 have NULs in their other halves.
  const std::string text =
      "第一章\n\n川は古い水車のそばを流れていた。\n\n　橋の上の一人は、"
      "何も知らなかった。\n\n";
  for (const char* charset : {"UTF-16LE", "UTF-16BE"}) {
    std::string bytes = FromUtf8For(charset, text + text);
    EXPECT_EQ(GuessUtf16(bytes), charset);
    bytes += std::string("\1\0\0\1", 4);  // controls, or no letters
    EXPECT_EQ(GuessUtf16(bytes), "");
  }
}

TEST(EncodingTest, Utf8ThatIsCutIsStillUtf8) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "吾輩は猫である。名前はまだ無い。";
  EXPECT_EQ(GuessCharset(text.substr(1)), "UTF-8");
  std::vector<std::string> warnings;
  EXPECT_EQ(ToUtf8(text.substr(2), "", &warnings), "\uFFFD" + text.substr(3));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("1 invalid")));
}

TEST(EncodingTest, ControlsAreThoseThatNoTextHas) {
  std::string text = "a\x01\x08\t\n\v\f\r\x0E\x1F ~\x7F\xC2\x80";
  EXPECT_EQ(ReplaceControls(&text), 5u);
  EXPECT_EQ(text, "a  \t\n\v\f\r   ~ \xC2\x80");
}

TEST(EncodingTest, ValidUtf8NeedsNoWarning) {
  std::vector<std::string> warnings;
  EXPECT_EQ(ToUtf8("café", "", &warnings), "café");
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(EncodingTest, InvalidBytesOfDeclaredUtf8AreReplacedAndCounted) {
  std::vector<std::string> warnings;
  EXPECT_EQ(ToUtf8("a\xFF"
                   "b\xC3",
                   "UTF-8", &warnings),
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD");
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("2 invalid")));
}

TEST(EncodingTest, Utf16InBothByteOrders) {
  std::vector<std::string> warnings;
  const std::string little("a\0\xE9\0\x3D\xD8\x00\xDE", 8);
  const std::string big("\0a\0\xE9\xD8\x3D\xDE\x00", 8);
  EXPECT_EQ(ToUtf8(little, "UTF-16LE", &warnings), "aé😀");
  EXPECT_EQ(ToUtf8(big, "UTF-16BE", &warnings), "aé😀");
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(EncodingTest, LoneSurrogatesAndHalfUnitsAreReplaced) {
  std::vector<std::string> warnings;
  // A lone low surrogate; a high one before a letter; a high one at the end;
  // half a unit.
  const std::string bytes(
      "\x00\xDC\x3D\xD8"
      "a\0\x3D\xD8z",
      9);
  EXPECT_EQ(ToUtf8(bytes, "UTF-16LE", &warnings),
            "\xEF\xBF\xBD\xEF\xBF\xBD"
            "a\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("4 invalid")));
  // U+E001, the unit after the high surrogate, is above the low surrogates.
  EXPECT_EQ(ToUtf8("\x3D\xD8\x01\xE0", "UTF-16LE", &warnings),
            "\xEF\xBF\xBD\xEE\x80\x81");
}

TEST(EncodingTest, ByteOrderMarks) {
  EXPECT_EQ(FindByteOrderMark("\xEF\xBB\xBFx").charset, "UTF-8");
  EXPECT_EQ(FindByteOrderMark("\xFF\xFEx").charset, "UTF-16LE");
  EXPECT_EQ(FindByteOrderMark("\xFE\xFFx").charset, "UTF-16BE");
  EXPECT_EQ(FindByteOrderMark({"\xFF\xFE\0\0x", 5}).charset, "UTF-32LE");
  EXPECT_EQ(FindByteOrderMark({"\0\0\xFE\xFFx", 5}).charset, "UTF-32BE");
  EXPECT_EQ(FindByteOrderMark({"\xFF\xFE\0x", 4}).charset, "UTF-16LE");
  EXPECT_EQ(FindByteOrderMark("\xEF\xBB").charset, "");
  EXPECT_EQ(FindByteOrderMark("").bytes, 0u);
}

TEST(EncodingTest, LabelsAsBrowsersReadThem) {
  for (const char* utf8 : {"UTF-8", "utf8", "Unicode-1-1-UTF-8"}) {
    EXPECT_EQ(CharsetOfLabel(utf8), "UTF-8") << utf8;
  }
  for (const char* latin :
       {"ISO-8859-1", "iso8859-1", "iso_8859-1", "ISO88591", "latin1", "l1",
        "Windows-1252", "cp1252", "x-cp1252", "us-ascii", "ascii"}) {
    EXPECT_EQ(CharsetOfLabel(latin), "WINDOWS-1252") << latin;
  }
  EXPECT_EQ(CharsetOfLabel("Shift_JIS"), "CP932");
  EXPECT_EQ(CharsetOfLabel("gb2312"), "GB18030");
  EXPECT_EQ(CharsetOfLabel("koi8-r"), "KOI8-R");
  for (const char* unknown : {"", "none-such", "utf-8//ignore", "a b"}) {
    EXPECT_EQ(CharsetOfLabel(unknown), "") << unknown;
  }
}

TEST(EncodingTest, LineEndsBecomeUnix) {
  EXPECT_EQ(WithUnixLineEnds("a\r\nb\rc\nd\r\r\n\r"), "a\nb\nc\nd\n\n\n");
  EXPECT_EQ(WithUnixLineEnds(""), "");
}

TEST(EncodingTest, CharsetIsFoundWhereBrowsersLook) {
  EXPECT_EQ(DeclaredCharset("<meta charset=\"Latin1\">"), "latin1");
  EXPECT_EQ(DeclaredCharset("<META http-equiv=Content-Type "
                            "content='text/html; charset=utf-8'>"),
            "utf-8");
  EXPECT_EQ(DeclaredCharset("<?xml version='1.0' encoding='ISO-8859-1'?>"),
            "iso-8859-1");
  EXPECT_EQ(DeclaredCharset("<meta name=x><meta charset = 'utf-8'/>"), "utf-8");
  EXPECT_EQ(DeclaredCharset("<meta charset=utf-8>" + std::string(1024, ' ')),
            "utf-8");
  EXPECT_EQ(DeclaredCharset(std::string(1024, ' ') + "<meta charset=utf-8>"),
            "");
  EXPECT_EQ(DeclaredCharset("<?xml version='1.0'?><p encoding='utf-16'>"), "");
  EXPECT_EQ(DeclaredCharset("<meta name=x><p>charset=utf-8"), "");
  EXPECT_EQ(DeclaredCharset("<meta charset"), "");
}

}  // namespace
}  // namespace tiercel::document
