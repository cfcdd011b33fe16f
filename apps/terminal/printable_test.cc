#include "apps/terminal/printable.h"

#include <string>

#include "absl/strings/str_format.h"
#include "apps/terminal/output.h"
#include "gtest/gtest.h"

namespace tiercel::cli {
namespace {

TEST(PrintableTest, LettersStay) {
  for (const std::string text : {"", "a b\tc\nd", "où est le 猫 \U0001f408?",
                                 "\u200f\u05d0\u200d", "a\u00a0b", "\ufffd"}) {
    EXPECT_EQ(Printable(text), text);
    EXPECT_EQ(PrintableJson(text), text);
  }
}

TEST(PrintableTest, NothingDrivesATerminal) {
  EXPECT_EQ(Printable("a\x1b[2J\x1b]0;b\x07"), "a?[2J?]0;b?");
  EXPECT_EQ(Printable("a\rb\r\nc\r"), "a?b\nc?");
  EXPECT_EQ(Printable(std::string("\0\x08\x7f", 3)), "???");
  // C1 as UTF-8, and as the byte that controls a terminal of Latin-1.
  EXPECT_EQ(Printable("\u009b31m \x9b"
                      "31m \u0085\u0080\u009f"),
            "?31m ?31m ???");
  EXPECT_EQ(Printable("a\u202etxt.exe\u202c \u2066b\u2069"), "a?txt.exe? ?b?");
  EXPECT_EQ(Printable("\u202a\u202b\u202c\u202d\u202e"), "?????");
  EXPECT_EQ(Printable("\u2066\u2067\u2068\u2069"), "????");
  EXPECT_EQ(Printable("\xff\xe2\x82"), "???");
}

TEST(PrintableTest, JsonIsTheSameDocument) {
  std::string all;
  for (const char32_t c :
       {0x01, 0x1b, 0x7f, 0x85, 0x9b, 0x202e, 0x2069, 0xe9, 0x732b}) {
    all += c < 0x80    ? std::string(1, static_cast<char>(c))
           : c < 0x800 ? std::string{static_cast<char>(0xc0 | c >> 6),
                                     static_cast<char>(0x80 | (c & 0x3f))}
                       : std::string{static_cast<char>(0xe0 | c >> 12),
                                     static_cast<char>(0x80 | (c >> 6 & 0x3f)),
                                     static_cast<char>(0x80 | (c & 0x3f))};
  }
  const Json document = {{"text", all}, {"\u202e", 1}};
  const std::string shown = PrintableJson(Dump(document));
  EXPECT_EQ(Printable(shown), shown);
  EXPECT_EQ(Json::parse(shown), document);
  EXPECT_NE(shown.find("\\u202e"), std::string::npos);
  EXPECT_NE(shown.find("\u732b"), std::string::npos);
}

}  // namespace
}  // namespace tiercel::cli
