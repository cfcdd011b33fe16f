#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "lib/status/error.h"
#include "models/tokenizer/gguf_pres.h"
#include "models/tokenizer/tokenizer.h"

namespace tiercel {
namespace {

using Strings = std::vector<std::string>;

// Tokens a, b, ab and <e>, merge "a b".
Metadata ByteLevel() {
  Metadata metadata;
  metadata.Set("tokenizer.ggml.model", std::string("gpt2"));
  metadata.Set("tokenizer.ggml.pre", std::string("smollm"));
  metadata.Set("tokenizer.ggml.tokens", Strings{"a", "b", "ab", "<e>"});
  metadata.Set("tokenizer.ggml.token_type", std::vector<int64_t>{1, 1, 1, 3});
  metadata.Set("tokenizer.ggml.merges", Strings{"a b"});
  metadata.Set("tokenizer.ggml.eos_token_id", uint64_t{3});
  return metadata;
}

// Tokens <s>, a, U+2581.
Metadata SentencePiece() {
  Metadata metadata;
  metadata.Set("tokenizer.ggml.model", std::string("llama"));
  metadata.Set("tokenizer.ggml.tokens", Strings{"<s>", "a", "\u2581"});
  metadata.Set("tokenizer.ggml.token_type", std::vector<int64_t>{3, 1, 1});
  metadata.Set("tokenizer.ggml.scores", std::vector<double>{0, -1, -2});
  return metadata;
}

// Returns the code of the first error in making a tokenizer; "" without one.
std::string CodeFrom(const Metadata& metadata) {
  absl::StatusOr<TokenizerSpec> spec = SpecFromGguf(metadata);
  if (!spec.ok()) return CodeOf(spec.status());
  const auto tokenizer = Tokenizer::Create(*std::move(spec));
  return tokenizer.ok() ? "" : CodeOf(tokenizer.status());
}

std::string CodeWith(Metadata metadata, const std::string& key,
                     MetadataValue value) {
  metadata.Set("tokenizer.ggml." + key, std::move(value));
  return CodeFrom(metadata);
}

TEST(GgufSpecTest, ReadsByteLevel) {
  const auto spec = SpecFromGguf(ByteLevel());
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->kind, TokenizerSpec::Kind::kByteLevel);
  EXPECT_EQ(NameOfCuts(spec->cuts), "smollm");
  EXPECT_EQ(spec->tokens.size(), 4u);
  EXPECT_EQ(spec->tokens[3].type, TokenType::kControl);
  EXPECT_EQ(spec->merges,
            (std::vector<std::pair<std::string, std::string>>{{"a", "b"}}));
  EXPECT_EQ(spec->bos, std::nullopt);
  EXPECT_EQ(spec->eos, 3);
  EXPECT_FALSE(spec->adds_bos);
  EXPECT_EQ(CodeFrom(ByteLevel()), "");
}

TEST(GgufSpecTest, ReadsSentencePiece) {
  Metadata metadata = SentencePiece();
  metadata.Set("tokenizer.ggml.bos_token_id", uint64_t{0});
  const auto spec = SpecFromGguf(metadata);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->kind, TokenizerSpec::Kind::kSentencePiece);
  EXPECT_EQ(spec->space_prefix, TokenizerSpec::SpacePrefix::kEachRun);
  EXPECT_TRUE(spec->strips_prefix);
  EXPECT_TRUE(spec->adds_bos);
  EXPECT_EQ(spec->tokens[2].score, -2);
  EXPECT_EQ(CodeFrom(metadata), "");
}

TEST(GgufSpecTest, SentencePieceHasUsualEnds) {
  Metadata metadata = SentencePiece();
  metadata.Set("tokenizer.ggml.tokens", Strings{"<unk>", "<s>", "</s>"});
  metadata.Set("tokenizer.ggml.token_type", std::vector<int64_t>{2, 3, 3});
  EXPECT_EQ(SpecFromGguf(metadata)->bos, 1);
  EXPECT_EQ(SpecFromGguf(metadata)->eos, 2);
  EXPECT_TRUE(SpecFromGguf(metadata)->adds_bos);
  metadata.Set("tokenizer.ggml.token_type", std::vector<int64_t>{2, 1, 1});
  EXPECT_EQ(SpecFromGguf(metadata)->bos, 1);
  metadata.Set("tokenizer.ggml.eos_token_id", uint64_t{0});
  EXPECT_EQ(SpecFromGguf(metadata)->eos, 0);
  // Words are no ends.
  metadata.Set("tokenizer.ggml.tokens", Strings{"<unk>", "a", "b"});
  EXPECT_EQ(SpecFromGguf(metadata)->bos, std::nullopt);
  EXPECT_FALSE(SpecFromGguf(metadata)->adds_bos);
  // Nor has a byte-level vocabulary any by itself.
  EXPECT_EQ(SpecFromGguf(ByteLevel())->bos, std::nullopt);
}

TEST(GgufSpecTest, FlagsOverrideWhatTheFamilyImplies) {
  Metadata metadata = SentencePiece();
  metadata.Set("tokenizer.ggml.bos_token_id", uint64_t{0});
  metadata.Set("tokenizer.ggml.add_bos_token", false);
  metadata.Set("tokenizer.ggml.add_space_prefix", false);
  const auto spec = SpecFromGguf(metadata);
  ASSERT_TRUE(spec.ok());
  EXPECT_FALSE(spec->adds_bos);
  EXPECT_FALSE(spec->strips_prefix);
  EXPECT_EQ(spec->space_prefix, TokenizerSpec::SpacePrefix::kNone);
}

TEST(GgufSpecTest, PreNamesTheFamily) {
  const auto with = [](const std::string& pre) {
    Metadata metadata = ByteLevel();
    metadata.Set("tokenizer.ggml.pre", pre);
    metadata.Set("tokenizer.ggml.bos_token_id", uint64_t{3});
    const auto spec = SpecFromGguf(metadata);
    EXPECT_TRUE(spec.ok()) << spec.status();
    return spec.ok() ? *spec : TokenizerSpec();
  };
  EXPECT_EQ(NameOfCuts(with("llama3").cuts), "llama-bpe");
  EXPECT_TRUE(with("llama-bpe").ignore_merges);
  EXPECT_TRUE(with("llama-bpe").adds_bos);
  EXPECT_EQ(NameOfCuts(with("qwen2").cuts), "qwen2");
  EXPECT_TRUE(with("qwen2").nfc);
  EXPECT_FALSE(with("qwen2").ignore_merges);
  EXPECT_FALSE(with("qwen2").adds_bos);
  // These have Llama 3's pattern alone.
  for (const char* name : {"smaug-bpe", "dbrx", "chatglm-bpe"}) {
    EXPECT_EQ(NameOfCuts(with(name).cuts), "llama-bpe") << name;
    EXPECT_FALSE(with(name).ignore_merges) << name;
    EXPECT_FALSE(with(name).adds_bos) << name;
  }
  EXPECT_TRUE(with("glm4").ignore_merges);
  EXPECT_FALSE(with("glm4").adds_bos);
  EXPECT_TRUE(with("lfm2").adds_bos);
  EXPECT_EQ(NameOfCuts(with("stablelm2").cuts), "qwen2");
  EXPECT_FALSE(with("stablelm2").nfc);
  EXPECT_TRUE(with("mpt").nfc);
  EXPECT_TRUE(with("command-r").nfc);
  EXPECT_EQ(NameOfCuts(with("minerva-7b").cuts), "smollm");
  EXPECT_EQ(NameOfCuts(with("jais").cuts), "gpt-2");
  EXPECT_EQ(NameOfCuts(with("starcoder").cuts), "smollm");
  EXPECT_EQ(NameOfCuts(with("gpt-2").cuts), "gpt-2");
}

// SentencePiece's spaces with merges.
TEST(GgufSpecTest, ReadsGemma4) {
  Metadata metadata = ByteLevel();
  metadata.Set("tokenizer.ggml.model", std::string("gemma4"));
  const auto spec = SpecFromGguf(metadata);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->kind, TokenizerSpec::Kind::kSentencePiece);
  EXPECT_FALSE(spec->merges.empty());
  EXPECT_EQ(spec->space_prefix, TokenizerSpec::SpacePrefix::kNone);
  EXPECT_FALSE(spec->strips_prefix);
}

TEST(GgufSpecTest, TokensOfPhi3TakeTheSpacesBehindThem) {
  Metadata metadata = SentencePiece();
  metadata.Set("tokenizer.ggml.tokens", Strings{"<s>", "a", "<|end|>"});
  metadata.Set("tokenizer.ggml.token_type", std::vector<int64_t>{3, 1, 3});
  const auto strips_right = [&metadata] {
    const auto spec = SpecFromGguf(metadata);
    EXPECT_TRUE(spec.ok()) << spec.status();
    std::string texts;
    for (const TokenEntry& token : spec->tokens) {
      if (token.strips_right) texts += token.text;
    }
    return texts;
  };
  EXPECT_EQ(strips_right(), "");
  metadata.Set("general.architecture", std::string("phi3"));
  EXPECT_EQ(strips_right(), "<|end|>");
}

TEST(GgufSpecTest, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(CodeFrom(Metadata()), "no_tokenizer");
  EXPECT_EQ(CodeWith(ByteLevel(), "model", std::string("none")),
            "no_tokenizer");
  EXPECT_EQ(CodeWith(ByteLevel(), "model", std::string("bert")),
            "unsupported_tokenizer");
  EXPECT_EQ(CodeWith(ByteLevel(), "pre", std::string("none")),
            "unsupported_tokenizer");
  EXPECT_EQ(CodeWith(ByteLevel(), "add_space_prefix", true),
            "unsupported_tokenizer");
  Metadata without_pre = SentencePiece();
  without_pre.Set("tokenizer.ggml.model", std::string("gpt2"));
  const auto spec = SpecFromGguf(without_pre);
  EXPECT_EQ(CodeOf(spec.status()), "unsupported_tokenizer");
  EXPECT_NE(spec.status().ToString().find("absent; need gpt-2"),
            std::string::npos)
      << spec.status();
}

TEST(GgufSpecTest, LengthsMustAgree) {
  EXPECT_EQ(CodeWith(ByteLevel(), "tokens", Strings{}), "invalid_vocab");
  EXPECT_EQ(CodeWith(ByteLevel(), "token_type", std::vector<int64_t>{1, 1, 1}),
            "invalid_vocab");
  EXPECT_EQ(CodeWith(SentencePiece(), "scores", std::vector<double>{0, 0}),
            "invalid_vocab");
  Metadata without_scores;
  without_scores.Set("tokenizer.ggml.model", std::string("llama"));
  without_scores.Set("tokenizer.ggml.tokens", Strings{"a"});
  EXPECT_EQ(CodeFrom(without_scores), "invalid_vocab");
  EXPECT_EQ(CodeWith(ByteLevel(), "tokens", Strings(kMostVocab + 1, "a")),
            "invalid_vocab");
}

// As in llama.cpp.
TEST(GgufSpec, IdsThatAreNoTokensAreNotUsed) {
  const MetadataValue none[] = {int64_t{-1}, uint64_t{4}, uint64_t{0xffffffff},
                                std::string("3"), std::vector<int64_t>{3}};
  for (const MetadataValue& value : none) {
    Metadata metadata = ByteLevel();
    metadata.Set("tokenizer.ggml.bos_token_id", value);
    metadata.Set("tokenizer.ggml.eos_token_id", value);
    metadata.Set("tokenizer.ggml.add_bos_token", true);
    const auto spec = SpecFromGguf(metadata);
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(spec->bos, std::nullopt);
    EXPECT_EQ(spec->eos, std::nullopt);
    EXPECT_FALSE(spec->adds_bos);
    metadata = SentencePiece();
    metadata.Set("tokenizer.ggml.eos_token_id", value);
    EXPECT_EQ(SpecFromGguf(metadata)->eos, SpecFromGguf(SentencePiece())->eos);
  }
}

TEST(GgufSpecTest, NumbersMustBeInRange) {
  EXPECT_EQ(
      CodeWith(ByteLevel(), "token_type", std::vector<int64_t>{1, 1, 1, 0}),
      "invalid_vocab");
  EXPECT_EQ(
      CodeWith(ByteLevel(), "token_type", std::vector<int64_t>{1, 1, 1, 7}),
      "invalid_vocab");
  EXPECT_EQ(CodeWith(ByteLevel(), "add_bos_token", true), "invalid_vocab");
  EXPECT_EQ(CodeWith(SentencePiece(), "scores",
                     std::vector<double>{
                         0, std::numeric_limits<double>::quiet_NaN(), 0}),
            "invalid_vocab");
}

TEST(GgufSpecTest, MergesMustBePairsOfTokens) {
  for (const char* merge : {"ab", "", " ", " b", "a ", "a  b", "a b ", "a c",
                            "c a", "c d", "b a"}) {
    EXPECT_EQ(CodeWith(ByteLevel(), "merges", Strings{merge}), "invalid_vocab")
        << merge;
  }
  // A merge with two spaces is invalid even if tokens contain spaces.
  Metadata spaced = ByteLevel();
  spaced.Set("tokenizer.ggml.tokens", Strings{"a", " b", "a b", "<e>"});
  EXPECT_EQ(CodeWith(spaced, "merges", Strings{"a  b"}), "invalid_vocab");
  EXPECT_EQ(CodeWith(ByteLevel(), "merges", std::vector<int64_t>{1}),
            "invalid_metadata");
  Metadata without = SentencePiece();
  without.Set("tokenizer.ggml.model", std::string("gpt2"));
  without.Set("tokenizer.ggml.pre", std::string("gpt-2"));
  EXPECT_EQ(CodeFrom(without), "invalid_vocab");
}

TEST(GgufSpecTest, ByteTokensAreSpelledStrictly) {
  for (const char* name : {"<0x-1>", "<0xZZ>", "<0x100>", "<0x1>", "0x00", "",
                           "<0x0 >", "<0X00>", "<0x+1>"}) {
    Metadata metadata = SentencePiece();
    metadata.Set("tokenizer.ggml.tokens", Strings{"<s>", "a", name});
    metadata.Set("tokenizer.ggml.token_type", std::vector<int64_t>{3, 1, 6});
    EXPECT_EQ(CodeFrom(metadata), "invalid_vocab") << name;
    // A word may have the form of a byte token.
    metadata.Set("tokenizer.ggml.token_type", std::vector<int64_t>{3, 1, 1});
    EXPECT_EQ(CodeFrom(metadata), "") << name;
  }
}

TEST(GgufSpecTest, ByteTokensAreAllThereOnceOrNone) {
  Strings tokens = {"<s>"};
  std::vector<int64_t> types = {3};
  for (int byte = 0; byte < 256; ++byte) {
    char name[7];
    std::snprintf(name, sizeof(name), "<0x%02X>", byte);
    tokens.push_back(name);
    types.push_back(6);
  }
  const auto code = [](const Strings& t, const std::vector<int64_t>& y) {
    Metadata metadata = SentencePiece();
    metadata.Set("tokenizer.ggml.tokens", t);
    metadata.Set("tokenizer.ggml.token_type", y);
    metadata.Set("tokenizer.ggml.scores", std::vector<double>(t.size()));
    return CodeFrom(metadata);
  };
  EXPECT_EQ(code(tokens, types), "");
  tokens[256] = "<0x00>";
  EXPECT_EQ(code(tokens, types), "invalid_vocab");
  tokens.pop_back();
  types.pop_back();
  EXPECT_EQ(code(tokens, types), "invalid_vocab");
}

TEST(GgufSpecTest, ByteLevelVocabulariesHaveNoByteTokens) {
  EXPECT_EQ(
      CodeWith(ByteLevel(), "token_type", std::vector<int64_t>{1, 1, 1, 6}),
      "invalid_vocab");
}

}  // namespace
}  // namespace tiercel
