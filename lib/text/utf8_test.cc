#include "lib/text/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace tiercel {
namespace {

TEST(Utf8Test, EveryScalarValueRoundTrips) {
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    std::string text;
    AppendUtf8(c, &text);
    const Utf8Char read = Utf8At(text, 0);
    ASSERT_EQ(read.code_point, c);
    ASSERT_EQ(read.bytes, text.size());
    ASSERT_EQ(UnfinishedUtf8(text), 0u);
  }
}

TEST(Utf8Test, EveryBeginningOfASequenceIsUnfinishedAndStray) {
  for (char32_t c = 0x80; c <= 0x10ffff; c += c < 0x3000 ? 1 : 61) {
    if (c >= 0xd800 && c < 0xe000) continue;
    std::string whole;
    AppendUtf8(c, &whole);
    for (size_t cut = 1; cut < whole.size(); ++cut) {
      std::string text = "a";
      text.append(whole, 0, cut);
      ASSERT_EQ(UnfinishedUtf8(text), cut) << static_cast<uint32_t>(c);
      ASSERT_EQ(Utf8At(text, 1).code_point, kNoCodePoint);
      ASSERT_EQ(Utf8At(text, 1).bytes, 1u);
    }
  }
}

TEST(Utf8Test, IllFormedBytesAreStray) {
  for (const std::string text :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff",
        "\xc3(", "\xe2\x82(", "\xf0\x9f\x98("}) {
    EXPECT_EQ(Utf8At(text, 0).code_point, kNoCodePoint);
    EXPECT_EQ(Utf8At(text, 0).bytes, 1u);
    EXPECT_EQ(UnfinishedUtf8(text + "."), 0u);
  }
  EXPECT_EQ(Utf8At("", 0).bytes, 0u);
}

TEST(Utf8Test, WhatCannotBeCompletedIsNotUnfinished) {
  for (const std::string text :
       {"", "a", "\x80", "\x80\x80\x80\x80", "\xc3\xa9\x80", "\xe0\x80",
        "\xed\xa0", "\xf4\x90", "\xf8\x88", "\xff", "\xf0\x9f\x98\x80\x80"}) {
    EXPECT_EQ(UnfinishedUtf8(text), 0u);
  }
}

// The examples of the Unicode standard, section 3.9, tables 3-8 to 3-11.
TEST(Utf8Test, MaximalSubpartsAreReplacedOnce) {
  const std::string r = "\ufffd";
  EXPECT_EQ(ReplaceInvalidUtf8("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(ReplaceInvalidUtf8("\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(ReplaceInvalidUtf8("\xf4\x91\x92\x93\xff\x41\x80\xbf\x42"),
            r + r + r + r + r + "A" + r + r + "B");
  EXPECT_EQ(ReplaceInvalidUtf8("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41"),
            r + r + r + r + "A");
  EXPECT_EQ(ReplaceInvalidUtf8("caf\u00e9 \U0001f600"), "caf\u00e9 \U0001f600");
}

}  // namespace
}  // namespace tiercel
