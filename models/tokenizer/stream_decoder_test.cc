#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "lib/text/utf8.h"
#include "models/tokenizer/tokenizer.h"

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
  EXPECT_EQ(stream.held(), "");
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
  EXPECT_EQ(stream.held(), "\xe2");
}

TEST(StreamDecoderTest, DropsTheFirstSpaceOfATextOnly) {
  const auto t = Bytes();
  StreamDecoder stream(t.get());
  EXPECT_EQ(*stream.Push(kControl), "");
  EXPECT_EQ(*stream.Push(kSpace), "");
  EXPECT_EQ(*stream.Push(kSpace), " ");
  EXPECT_EQ(*stream.Push('a'), "a");
  EXPECT_EQ(*stream.Push(kSpace), " ");
}

TEST(StreamDecoderTest, GoesOnBehindTokens) {
  const auto t = Bytes();
  const auto behind = [&](const std::vector<int32_t>& before,
                          bool within_text) {
    StreamDecoder stream(t.get());
    EXPECT_TRUE(stream.GoOnBehind(before, within_text).ok());
    return stream;
  };
  // The tokens before give no output, and a sequence comes whole.
  EXPECT_EQ(behind({'a', 0xf0, 0x9f, 0x98}, true).held(), "\xf0\x9f\x98");
  EXPECT_EQ(*behind({'a', 0xf0, 0x9f, 0x98}, true).Push(0x80), "\U0001f600");
  EXPECT_EQ(*behind({0xc3, kControl}, true).Push(0xa9), "\u00e9");
  EXPECT_EQ(*behind({0xe2, 0x82}, false).Push('x'), "\ufffdx");
  for (const std::vector<int32_t>& before : std::vector<std::vector<int32_t>>{
           {}, {'a'}, {0xe2, 0x82, 0xac}, {0x82, 0x82, 0x82}, {0xff}}) {
    EXPECT_EQ(behind(before, true).held(), "");
  }
  // The first space of the text is already past.
  EXPECT_EQ(*behind({kControl}, false).Push(kSpace), "");
  EXPECT_EQ(*behind({kControl, 'a'}, true).Push(kSpace), " ");
  StreamDecoder stream(t.get());
  EXPECT_FALSE(stream.GoOnBehind(std::vector<int32_t>{-1}, true).ok());
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
    for (size_t i = 0; i < ids.size(); ++i) {
      if (random() % 3 == 0) {  // another decoder continues
        StreamDecoder next(t.get());
        ASSERT_TRUE(
            next.GoOnBehind(absl::MakeConstSpan(ids).first(i), i > 0).ok());
        stream = next;
      }
      const std::string part = *stream.Push(ids[i]);
      ASSERT_EQ(ReplaceInvalidUtf8(part), part);
      text += part;
    }
    text += ReplaceInvalidUtf8(stream.held());
    ASSERT_EQ(text,
              ReplaceInvalidUtf8(*t->Decode(ids, Tokenizer::Special::kPlain)));
  }
}

}  // namespace
}  // namespace tiercel
