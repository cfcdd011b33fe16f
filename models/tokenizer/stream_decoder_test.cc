#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "models/tokenizer/tokenizer.h"
#include "models/tokenizer/utf8.h"

namespace tiercel {
namespace {

// Byte tokens 0 to 255, then U+2581, "<s>" (control) and U+00E9.
constexpr int32_t kSpace = 256;
constexpr int32_t kControl = 257;
constexpr int32_t kLetter = 258;

std::unique_ptr<Tokenizer> Bytes() {
  TokenizerSpec spec;
  spec.kind = TokenizerSpec::Kind::kSentencePiece;
  spec.strips_prefix = true;
  for (int byte = 0; byte < 256; ++byte) {
    char name[7];
    std::snprintf(name, sizeof(name), "<0x%02X>", byte);
    spec.tokens.push_back({name, TokenType::kByte, 0});
  }
  spec.tokens.push_back({"\u2581", TokenType::kNormal, 0});
  spec.tokens.push_back({"<s>", TokenType::kControl, 0});
  spec.tokens.push_back({"\u00e9", TokenType::kNormal, 0});
  auto tokenizer = Tokenizer::Create(std::move(spec));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

TEST(StreamDecoderTest, HoldsBackAnUnfinishedSequence) {
  const auto t = Bytes();
  StreamDecoder stream(t.get());
  EXPECT_EQ(*stream.Push(0xf0), "");
  EXPECT_EQ(*stream.Push(0x9f), "");
  EXPECT_EQ(*stream.Push(0x98), "");
  EXPECT_EQ(*stream.Push(0x80), "\U0001f600");
  EXPECT_EQ(*stream.Push('a'), "a");
  EXPECT_EQ(stream.Finish(), "");
}

TEST(StreamDecoderTest, WhatCannotBecomeValidIsReplaced) {
  const auto t = Bytes();
  StreamDecoder stream(t.get());
  EXPECT_EQ(*stream.Push(0xff), "\ufffd");
  EXPECT_EQ(*stream.Push(0xe2), "");
  EXPECT_EQ(*stream.Push(0x82), "");
  EXPECT_EQ(*stream.Push('x'), "\ufffdx");
  EXPECT_EQ(*stream.Push(0xe2), "");
  EXPECT_EQ(*stream.Push(kLetter), "\ufffd\u00e9");
  EXPECT_EQ(*stream.Push(0xe2), "");
  EXPECT_EQ(stream.Finish(), "\ufffd");
  EXPECT_EQ(stream.Finish(), "");
}

TEST(StreamDecoderTest, DropsTheFirstSpaceOfATextOnly) {
  const auto t = Bytes();
  StreamDecoder stream(t.get());
  EXPECT_EQ(*stream.Push(kControl), "");
  EXPECT_EQ(*stream.Push(kSpace), "");
  EXPECT_EQ(*stream.Push(kSpace), " ");
  EXPECT_EQ(stream.Finish(), "");
  EXPECT_EQ(*stream.Push('a'), "a");
  EXPECT_EQ(*stream.Push(kSpace), " ");
}

TEST(StreamDecoderTest, AnErrorChangesNothing) {
  const auto t = Bytes();
  StreamDecoder stream(t.get());
  EXPECT_EQ(*stream.Push(0xc3), "");
  EXPECT_FALSE(stream.Push(-1).ok());
  EXPECT_EQ(*stream.Push(0xa9), "\u00e9");
}

TEST(StreamDecoderTest, EveryPartIsUtf8AndAllOfThemAreTheText) {
  const auto t = Bytes();
  std::mt19937 random(6);
  const int32_t likely[] = {0xe2, 0x82, 0xac, 0xf0, 0x9f,   0x98,   0x80,
                            0xed, 0xa0, 0xc3, 'a',  kSpace, kLetter};
  for (int round = 0; round < 20000; ++round) {
    std::vector<int32_t> ids(random() % 10);
    for (int32_t& id : ids) id = likely[random() % std::size(likely)];
    StreamDecoder stream(t.get());
    std::string text;
    for (const int32_t id : ids) {
      const std::string part = *stream.Push(id);
      ASSERT_EQ(ReplaceInvalidUtf8(part), part);
      text += part;
    }
    text += stream.Finish();
    ASSERT_EQ(text,
              ReplaceInvalidUtf8(*t->Decode(ids, Tokenizer::Special::kPlain)));
  }
}

}  // namespace
}  // namespace tiercel
