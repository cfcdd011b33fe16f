#include "lib/text/quote.h"

#include <gtest/gtest.h>

namespace tiercel {
namespace {

TEST(Quoted, EscapesControlBytesAndBrokenUtf8) {
  EXPECT_EQ(Quoted(""), "\"\"");
  EXPECT_EQ(Quoted("a.b"), "\"a.b\"");
  EXPECT_EQ(Quoted("\xc3\xa9"), "\"\xc3\xa9\"");
  EXPECT_EQ(Quoted("\x1b[31m\n"), "\"\\x1b[31m\\n\"");
  EXPECT_EQ(Quoted("\xff"), "\"\\xff\"");
}

TEST(Quoted, CutsAfter64Bytes) {
  EXPECT_EQ(Quoted(std::string(64, 'x')), "\"" + std::string(64, 'x') + "\"");
  EXPECT_EQ(Quoted(std::string(65, 'x')),
            "\"" + std::string(64, 'x') + "...\"");
  // The cut goes through a character: what is shown is still UTF-8.
  EXPECT_TRUE(IsValidUtf8(Quoted(std::string(63, 'x') + "\xc3\xa9 and more")));
}

TEST(IsValidUtf8, EdgesOfEveryLength) {
  for (const std::string text : {"\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80",
                                 "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf",
                                 "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(IsValidUtf8(text));
    EXPECT_TRUE(IsValidUtf8(text + text));
    if (text.size() > 1) {
      EXPECT_FALSE(IsValidUtf8(text.substr(0, text.size() - 1)));
      EXPECT_FALSE(IsValidUtf8(text.substr(1)));
    }
  }
}

TEST(IsValidUtf8, RefusesOverlongSurrogateAndTooLarge) {
  for (const char* text :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf",
        "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xc3(", "\xe2\x82("}) {
    EXPECT_FALSE(IsValidUtf8(text)) << Quoted(text);
  }
}

}  // namespace
}  // namespace tiercel
