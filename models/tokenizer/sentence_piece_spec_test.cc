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

// A user-defined symbol is a word of a run: it is found where spaces have
// become U+2581, the space before the text among them, longest first; nothing
// merges with it, and the run goes on behind it.
TEST(SentencePieceSpecTest, FindsUserDefinedSymbolsWithinARun) {
  const auto tokenizer = Tokenizer::Create(*SpecFromSentencePiece(
      Model() + Piece("\u2581\u2581", 0, TokenType::kUserDefined) +
      Piece("1", 0, TokenType::kUserDefined) +
      Piece("1b", 0, TokenType::kUserDefined)));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  constexpr int32_t kSpace = 259, kA = 260, kSpaceA = 261, kSpaces = 262,
                    kOne = 263, kOneB = 264;
  const auto expect = [&](const std::string& text,
                          const std::vector<int32_t>& want) {
    std::vector<int32_t> ids;
    ASSERT_TRUE(
        (*tokenizer)->Encode(text, Tokenizer::Special::kPlain, &ids).ok());
    EXPECT_EQ(ids, want) << text;
    EXPECT_EQ(*(*tokenizer)->Decode(ids, Tokenizer::Special::kPlain), text);
  };
  expect("1a1 a", {kSpace, kOne, kA, kOne, kSpaceA});
  expect("1b1", {kSpace, kOneB, kOne});
  expect(" a", {kSpaces, kA});
  expect("a  a a", {kSpaceA, kSpaces, kA, kSpaceA});
  expect("a   a", {kSpaceA, kSpaces, kSpaceA});
}

// An unused piece merges like others, but comes out as the pieces of which it
// was made.
TEST(SentencePieceSpecTest, UnusedPiecesComeOutAsTheirParts) {
  const auto tokenizer = Tokenizer::Create(
      *SpecFromSentencePiece(Model() + Piece("b", -3, TokenType::kNormal) +
                             Piece("ab", -0.1f, TokenType::kUnused) +
                             Piece("abb", -0.2f, TokenType::kUnused) +
                             Piece("abbc", -0.3f, TokenType::kNormal)));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  constexpr int32_t kSpace = 259, kA = 260, kB = 262, kAbbc = 265;
  const auto expect = [&](const std::string& text,
                          const std::vector<int32_t>& want) {
    std::vector<int32_t> ids;
    ASSERT_TRUE(
        (*tokenizer)->Encode(text, Tokenizer::Special::kPlain, &ids).ok());
    EXPECT_EQ(ids, want) << text;
    EXPECT_EQ(*(*tokenizer)->Decode(ids, Tokenizer::Special::kPlain), text);
  };
  expect("ab", {kSpace, kA, kB});
  expect("abb", {kSpace, kA, kB, kB});
  expect("abbc", {kSpace, kAbbc});
  expect("abbabbc", {kSpace, kA, kB, kB, kAbbc});
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

// Returns the ids of two runs, the second behind </s>, in a folder with these
// settings; a is 260, and with a space before it 261.
std::vector<int32_t> IdsIn(const nlohmann::json& settings,
                           const std::string& model = Model()) {
  const auto tokenizer = Tokenizer::Create(*SpecFromHuggingFace(
      {{"tokenizer.model", model}, {"tokenizer_config.json", settings}}));
  std::vector<int32_t> ids;
  EXPECT_TRUE(
      (*tokenizer)->Encode("a</s>a", Tokenizer::Special::kParse, &ids).ok());
  EXPECT_EQ(*(*tokenizer)->Decode(ids, Tokenizer::Special::kParse), "a</s>a");
  return ids;
}

// The class of transformers decides where a space is added.
TEST(SentencePieceSpecTest, SpacesOfTransformersClasses) {
  using Ids = std::vector<int32_t>;
  const Ids none = {260, 2, 260}, first = {261, 2, 260};
  EXPECT_EQ(IdsIn({{"tokenizer_class", "LlamaTokenizer"}}), first);
  EXPECT_EQ(IdsIn({{"tokenizer_class", "CodeLlamaTokenizerFast"}}), first);
  EXPECT_EQ(IdsIn({{"tokenizer_class", "LlamaTokenizer"}, {"legacy", nullptr}}),
            first);
  EXPECT_EQ(IdsIn({{"tokenizer_class", "LlamaTokenizer"},
                   {"add_prefix_space", false},
                   {"legacy", true}}),
            none);
  EXPECT_EQ(IdsIn({{"tokenizer_class", "GemmaTokenizer"}}), none);
  EXPECT_EQ(IdsIn({{"legacy", false}}), first);
  EXPECT_EQ(IdsIn({{"add_prefix_space", false}, {"legacy", false}}), first);

  const std::string without = Model(Number(3, 2), Number(3, 0) + Number(4, 0));
  EXPECT_EQ(IdsIn({{"legacy", false}}, without), none);
  EXPECT_EQ(IdsIn({{"tokenizer_class", "LlamaTokenizer"}}, without), first);
  EXPECT_EQ(
      IdsIn({{"tokenizer_class", "LlamaTokenizer"}, {"legacy", true}}, without),
      none);
}

// SentencePiece puts a space before each run, even before a space; what is not
// legacy does neither.
TEST(SentencePieceSpecTest, LegacyIsSentencePiecesOwnWay) {
  const auto ids_in = [](const nlohmann::json& settings) {
    const auto tokenizer = Tokenizer::Create(*SpecFromHuggingFace(
        {{"tokenizer.model", Model()}, {"tokenizer_config.json", settings}}));
    std::vector<int32_t> ids;
    EXPECT_TRUE((*tokenizer)
                    ->Encode(" a</s> a", Tokenizer::Special::kParse, &ids)
                    .ok());
    return ids;
  };
  using Ids = std::vector<int32_t>;
  const Ids own = {259, 261, 2, 259, 261};
  EXPECT_EQ(ids_in(nlohmann::json::object()), own);
  EXPECT_EQ(ids_in({{"tokenizer_class", "PreTrainedTokenizerFast"}}), own);
  EXPECT_EQ(ids_in({{"tokenizer_class", "LlamaTokenizer"}, {"legacy", true}}),
            own);
  EXPECT_EQ(ids_in({{"tokenizer_class", "LlamaTokenizer"}}),
            (Ids{261, 2, 261}));
}

// Settings may give a piece another name, and normalise nothing.
TEST(SentencePieceSpecTest, SettingsRenamePieces) {
  const auto spec = SpecFromHuggingFace(
      {{"tokenizer.model", Model()},
       {"tokenizer_config.json",
        {{"added_tokens_decoder",
          {{"260", {{"content", "<x>"}, {"special", true}}},
           {"300", {{"content", "<y>"}, {"normalized", true}}}}}}}});
  ASSERT_TRUE(spec.ok()) << spec.status();
  ASSERT_EQ(spec->tokens.size(), 263u);
  EXPECT_EQ(spec->tokens[260].text, "<x>");
  EXPECT_EQ(spec->tokens[260].type, TokenType::kControl);
  EXPECT_EQ(spec->tokens[262].text, "<y>");
  EXPECT_FALSE(spec->tokens[262].normalized);
}

// A symbol that the settings list with spaces to strip is an added token.
TEST(SentencePieceSpecTest, SymbolsWithSpacesToStripAreAddedTokens) {
  const auto tokenizer = Tokenizer::Create(*SpecFromHuggingFace(
      {{"tokenizer.model", Model() + Piece("1", 0, TokenType::kUserDefined)},
       {"tokenizer_config.json",
        {{"added_tokens_decoder",
          {{"262", {{"content", "1"}, {"rstrip", true}}}}}}}}));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  std::vector<int32_t> ids;
  ASSERT_TRUE(
      (*tokenizer)->Encode("a1  a", Tokenizer::Special::kPlain, &ids).ok());
  EXPECT_EQ(ids, (std::vector<int32_t>{261, 262, 261}));
}

}  // namespace
}  // namespace tiercel::sentence_piece_spec_test
