#include "models/tokenizer/nfc.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <cstdlib>
#include <random>
#include <string>

#include "lib/text/utf8.h"

namespace tiercel {
namespace {

// The library's own composition, which is right but may be slow.
std::string LibraryNfc(const std::string& text) {
  utf8proc_uint8_t* out = nullptr;
  const utf8proc_ssize_t bytes = utf8proc_map(
      reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
      static_cast<utf8proc_ssize_t>(text.size()), &out,
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  EXPECT_GE(bytes, 0);
  std::string result(reinterpret_cast<char*>(out),
                     static_cast<size_t>(bytes < 0 ? 0 : bytes));
  std::free(out);
  return result;
}

TEST(NfcTest, ByHand) {
  EXPECT_EQ(ComposeNfc(""), "");
  EXPECT_EQ(ComposeNfc("caf\u00e9"), "caf\u00e9");
  EXPECT_EQ(ComposeNfc("cafe\u0301"), "caf\u00e9");
  EXPECT_EQ(ComposeNfc("\u212b"), "\u00c5");                // singleton
  EXPECT_EQ(ComposeNfc("q\u0307\u0323"), "q\u0323\u0307");  // order
  EXPECT_EQ(ComposeNfc("\u0958"), "\u0915\u093c");          // excluded
  EXPECT_EQ(ComposeNfc("\u1112\u1161\u11ab"), "\ud55c");    // Hangul
  EXPECT_EQ(ComposeNfc("\u1f82"), "\u1f82");  // decomposes into four
}

TEST(NfcTest, FixedTextsStayWhereverTheyStand) {
  for (const char* fixed : {"", "ab", "\u4e2d\u6587", "\U0001f600", "\u0448"}) {
    EXPECT_TRUE(IsFixedInNfc(fixed)) << fixed;
  }
  for (const char* other : {"\u00c9", "\ud55c\uad6d", "\u1161", "e\u0301",
                            "\u212b", "\u09be", "\xff"}) {
    EXPECT_FALSE(IsFixedInNfc(other)) << other;
  }
  int fixed = 0;
  for (char32_t c = 0x80; c < 0x20000; ++c) {
    if (0xd800 <= c && c < 0xe000) continue;
    std::string text;
    AppendUtf8(c, &text);
    if (!IsFixedInNfc(text)) continue;
    ++fixed;
    for (const char* before : {"a", "\u1100", "\uac00", "\u09c7", "\u0b92"}) {
      ASSERT_EQ(ComposeNfc(before + text), before + text) << unsigned{c};
    }
    for (const char* behind :
         {"\u0301", "\u0323", "\u3099", "\u11a8", "\u0bd7"}) {
      ASSERT_EQ(ComposeNfc(text + behind), text + behind) << unsigned{c};
    }
  }
  EXPECT_GT(fixed, 40'000);
}

TEST(NfcTest, BytesThatAreNotUtf8StayAndSeparate) {
  EXPECT_EQ(ComposeNfc("e\xff\u0301"), "e\xff\u0301");
  EXPECT_EQ(ComposeNfc("\xcc"), "\xcc");
  EXPECT_EQ(ComposeNfc("e\u0301\xed\xa0\x80"
                       "e\u0301"),
            "\u00e9\xed\xa0\x80\u00e9");
}

TEST(NfcTest, EveryCodePointAloneAndBeforeAMark) {
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    if (c >= 0x40000 && c % 101 != 0) continue;
    std::string one;
    AppendUtf8(c, &one);
    for (const std::string& text : {one, one + "\u0301", "e" + one}) {
      ASSERT_EQ(ComposeNfc(text), LibraryNfc(text)) << static_cast<uint32_t>(c);
    }
  }
}

TEST(NfcTest, RandomMarks) {
  const char32_t alphabet[] = {'a',    'e',   ' ',    0x301,  0x316,  0x327,
                               0x323,  0x307, 0x345,  0x1161, 0x11a8, 0x1100,
                               0xac00, 0xe9,  0x1e69, 0x5b0,  0x5b1,  0x94d};
  std::mt19937 random(5);
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (int left = static_cast<int>(random() % 12); left > 0; --left) {
      AppendUtf8(alphabet[random() % std::size(alphabet)], &text);
    }
    ASSERT_EQ(ComposeNfc(text), LibraryNfc(text)) << text;
  }
}

// A long text is composed in parts.
TEST(NfcTest, LongTextsAreCutWhereNothingComposes) {
  const char32_t alphabet[] = {'a', 'e', 0xe9, 0x301, 0x316, 0x327, 0x1e69};
  std::mt19937 random(6);
  for (int round = 0; round < 4; ++round) {
    std::string text;
    for (int i = 0; i < 100'000; ++i) {
      AppendUtf8(alphabet[random() % std::size(alphabet)], &text);
    }
    ASSERT_EQ(ComposeNfc(text), LibraryNfc(text));
  }
}

// The library alone would need 10^11 exchanges.
TEST(NfcTest, AMillionMarksOutOfOrder) {
  std::string text = "e";
  for (int i = 0; i < 500000; ++i) text += "\u0301\u0316";
  const std::string composed = ComposeNfc(text);
  // One U+0301 composed with the letter, from behind all the U+0316.
  ASSERT_EQ(composed.size(), 2000000u);
  EXPECT_EQ(composed.substr(0, 4), "\u00e9\u0316");
  EXPECT_EQ(composed.substr(composed.size() - 2), "\u0301");
}

}  // namespace
}  // namespace tiercel
