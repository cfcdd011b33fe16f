#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include "lib/status/error.h"
#include "models/tokenizer/tokenizer.h"

namespace tiercel::sentence_piece_spec_test {
namespace {

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) {
    bytes.push_back(static_cast<char>(value | 0x80));
  }
  bytes.push_back(static_cast<char>(value));
  return bytes;
}
std::string Number(int field, uint64_t value) {
  return Varint(static_cast<uint64_t>(field) << 3) + Varint(value);
}
std::string Text(int field, std::string_view text) {
  return Varint(static_cast<uint64_t>(field) << 3 | 2) + Varint(text.size()) +
         std::string(text);
}
std::string Float(int field, float value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return Varint(static_cast<uint64_t>(field) << 3 | 5) + bytes;
}

std::string Piece(std::string_view text, float score, TokenType type) {
  return Text(1, Text(1, text) + Float(2, score) +
                     Number(3, static_cast<uint64_t>(type)));
}

// A model as SentencePiece trains it for Llama.
std::string Model(const std::string& trainer = Number(3, 2),
                  const std::string& normalizer = Number(4, 0)) {
  std::string bytes = Piece("<unk>", 0, TokenType::kUnknown) +
                      Piece("<s>", 0, TokenType::kControl) +
                      Piece("</s>", 0, TokenType::kControl);
  for (int byte = 0; byte < 256; ++byte) {
    char name[7];
    std::snprintf(name, sizeof(name), "<0x%02X>", byte);
    bytes += Piece(name, 0, TokenType::kByte);
  }
  bytes += Text(1, Text(1, "\u2581")) + Piece("a", -1, TokenType::kNormal) +
           Piece("\u2581a", -0.5f, TokenType::kNormal);
  return bytes + Text(2, trainer) + Text(3, normalizer) + Text(9, "unknown");
}

std::string CodeFrom(const std::string& bytes) {
  absl::StatusOr<TokenizerSpec> spec = SpecFromSentencePiece(bytes);
  if (!spec.ok()) return CodeOf(spec.status());
  const auto tokenizer = Tokenizer::Create(*std::move(spec));
  return tokenizer.ok() ? "" : CodeOf(tokenizer.status());
}

TEST(SentencePieceSpecTest, ReadsPiecesAndSettings) {
  const auto spec = SpecFromSentencePiece(Model());
  ASSERT_TRUE(spec.ok()) << spec.status();
  ASSERT_EQ(spec->tokens.size(), 262u);
  EXPECT_EQ(spec->tokens[1].type, TokenType::kControl);
  EXPECT_EQ(spec->tokens[259].text, "\u2581");
  EXPECT_EQ(spec->tokens[259].type, TokenType::kNormal);
  EXPECT_EQ(spec->tokens[261].score, -0.5f);
  EXPECT_EQ(spec->bos, 1);
  EXPECT_EQ(spec->eos, 2);
  EXPECT_TRUE(spec->adds_bos);
  EXPECT_EQ(spec->space_prefix, TokenizerSpec::SpacePrefix::kEachRun);
  const auto other = SpecFromSentencePiece(
      Model(Number(3, 2) + Number(41, ~uint64_t{0}) + Number(42, 0),
            Number(3, 0) + Number(4, 0)));
  EXPECT_EQ(other->bos, std::nullopt);
  EXPECT_EQ(other->eos, 0);
  EXPECT_FALSE(other->adds_bos);
  EXPECT_EQ(other->space_prefix, TokenizerSpec::SpacePrefix::kNone);
}

TEST(SentencePieceSpecTest, SpellsText) {
  const auto tokenizer = Tokenizer::Create(*SpecFromSentencePiece(Model()));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  std::vector<int32_t> ids;
  ASSERT_TRUE(
      (*tokenizer)->Encode("a ab", Tokenizer::Special::kPlain, &ids).ok());
  EXPECT_EQ(ids, (std::vector<int32_t>{261, 261, 3 + 'b'}));
  EXPECT_EQ(*(*tokenizer)->Decode(ids, Tokenizer::Special::kPlain), "a ab");
}

TEST(SentencePieceSpecTest, OtherKindsAreRefused) {
  EXPECT_EQ(CodeFrom(Model()), "");
  EXPECT_EQ(CodeFrom(Model(Number(3, 1))), "unsupported_tokenizer");
  EXPECT_EQ(CodeFrom(Model("")), "unsupported_tokenizer");
  EXPECT_EQ(CodeFrom(Model(Number(3, 2) + Number(24, 1))),
            "unsupported_tokenizer");
  EXPECT_EQ(CodeFrom(Model(Number(3, 2) + Number(24, 0))), "");
  EXPECT_EQ(CodeFrom(Model(Number(3, 2), "")), "unsupported_tokenizer");
  EXPECT_EQ(CodeFrom(Model(Number(3, 2), Number(4, 0) + Number(5, 0))),
            "unsupported_tokenizer");
  EXPECT_EQ(CodeFrom(Model(Number(3, 2), Number(4, 0) + Text(2, "map"))),
            "unsupported_tokenizer");
}

TEST(SentencePieceSpecTest, DamagedFilesAreErrors) {
  EXPECT_EQ(CodeFrom(""), "invalid_vocab");
  EXPECT_EQ(CodeFrom("{\"version\": 1}"), "invalid_vocab");
  EXPECT_EQ(CodeFrom(Text(1, Number(3, 7)) + Model()), "invalid_vocab");
  EXPECT_EQ(
      CodeFrom(Text(1, Float(2, std::numeric_limits<float>::quiet_NaN())) +
               Model()),
      "invalid_vocab");
  const std::string whole = Piece("<unk>", 0, TokenType::kUnknown);
  for (size_t size = 1; size < whole.size(); ++size) {
    EXPECT_EQ(CodeFrom(whole.substr(0, size)), "invalid_vocab") << size;
  }
  EXPECT_EQ(CodeFrom(std::string(11, '\xff')), "invalid_vocab");
}

// A folder's settings count before the model's own.
TEST(SentencePieceSpecTest, InAFolder) {
  nlohmann::json files = {{"tokenizer.model", Model()}};
  EXPECT_EQ(SpecFromHuggingFace(files)->bos, 1);
  EXPECT_TRUE(SpecFromHuggingFace(files)->adds_bos);
  files["tokenizer_config.json"] = {
      {"bos_token", nullptr},
      {"eos_token", "a"},
      {"added_tokens_decoder",
       {{"262", {{"content", "<|im_end|>"}, {"special", true}}}}}};
  const auto spec = SpecFromHuggingFace(files);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->bos, std::nullopt);
  EXPECT_FALSE(spec->adds_bos);
  EXPECT_EQ(spec->eos, 260);
  EXPECT_EQ(spec->tokens[262].text, "<|im_end|>");
}

}  // namespace
}  // namespace tiercel::sentence_piece_spec_test
