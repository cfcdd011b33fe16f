#include "models/tokenizer/byte_alphabet.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "lib/text/utf8.h"

namespace tiercel {
namespace {

TEST(ByteAlphabetTest, KnownLetters) {
  EXPECT_EQ(BytesOfSpelling("\u0120Hello"), " Hello");
  EXPECT_EQ(BytesOfSpelling("\u010a"), "\n");
  EXPECT_EQ(BytesOfSpelling("\u0100"), std::string(1, '\0'));
  EXPECT_EQ(BytesOfSpelling("\u0121\u0122"), "\x7f\x80");
  EXPECT_EQ(BytesOfSpelling("\u0142\u0143"), "\xa0\xad");
  EXPECT_EQ(BytesOfSpelling("\u00c3\u00a9"), "\xc3\xa9");
  EXPECT_EQ(BytesOfSpelling(""), "");
}

TEST(ByteAlphabetTest, HasEveryByteOnceAndNothingElse) {
  std::set<std::string> bytes;
  int letters = 0;
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    std::string letter;
    AppendUtf8(c, &letter);
    if (const auto byte = BytesOfSpelling(letter)) {
      ASSERT_EQ(byte->size(), 1u);
      bytes.insert(*byte);
      ++letters;
    }
  }
  EXPECT_EQ(letters, 256);
  EXPECT_EQ(bytes.size(), 256u);
}

TEST(ByteAlphabetTest, RefusesSpellingsOutsideIt) {
  EXPECT_EQ(BytesOfSpelling("a b"), std::nullopt);
  EXPECT_EQ(BytesOfSpelling("\u0144"), std::nullopt);
  EXPECT_EQ(BytesOfSpelling("\u2581a"), std::nullopt);
  EXPECT_EQ(BytesOfSpelling("\xff"), std::nullopt);
}

}  // namespace
}  // namespace tiercel
