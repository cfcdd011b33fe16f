#include "models/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "lib/status/error.h"

namespace tiercel::tokenizer_test {
namespace {

using Ids = std::vector<int32_t>;

constexpr Tokenizer::Special kPlain = Tokenizer::Special::kPlain;
constexpr Tokenizer::Special kParse = Tokenizer::Special::kParse;

TokenizerSpec ByteSpec() {
  TokenizerSpec spec;
  const auto add = [&spec](std::string text, TokenType type) {
    spec.tokens.push_back({std::move(text), type, 0});
  };
  for (const char* text : {"a", "b", "c", "<", ">", "/", "\u0120"}) {
    add(text, TokenType::kNormal);  // 0 to 6
  }
  add("ab", TokenType::kNormal);         // 7
  add("<a>", TokenType::kControl);       // 8
  add("<b>", TokenType::kUserDefined);   // 9
  add("<a><b>", TokenType::kControl);    // 10
  add("abc", TokenType::kUnused);        // 11
  add("<u>", TokenType::kUnknown);       // 12
  add("two words", TokenType::kNormal);  // 13: not in the byte alphabet
  spec.merges = {{"a", "b"}};
  spec.cuts = {{std::string(kGpt2Pattern)}};
  spec.bos = 8;
  spec.eos = 10;
  return spec;
}

std::unique_ptr<Tokenizer> Made(TokenizerSpec spec) {
  auto tokenizer = Tokenizer::Create(std::move(spec));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

Ids Encoded(const Tokenizer& tokenizer, std::string_view text,
            Tokenizer::Special special = kPlain) {
  Ids ids;
  const absl::Status s = tokenizer.Encode(text, special, &ids);
  EXPECT_TRUE(s.ok()) << s;
  return ids;
}

// A file may say that a letter of its vocabulary is for padding, too.
TEST(TokenizerTest, ALetterThatIsSpecialTooSpellsTexts) {
  TokenizerSpec spec = ByteSpec();
  spec.tokens[2].type = TokenType::kControl;
  const auto t = Made(spec);
  EXPECT_EQ(Encoded(*t, "acb"), (Ids{0, 2, 1}));
  // One that is a normal token, too, is spelled by that.
  spec.tokens.push_back({"a", TokenType::kControl, 0});
  EXPECT_EQ(Encoded(*Made(spec), "acb"), (Ids{0, 2, 1}));
}

TEST(TokenizerTest, PlainTextNeverBecomesAControlToken) {
  const auto t = Made(ByteSpec());
  EXPECT_EQ(Encoded(*t, "<a>"), (Ids{3, 0, 4}));
  EXPECT_EQ(Encoded(*t, "<a>", kParse), (Ids{8}));
  EXPECT_EQ(Encoded(*t, "<a><b>"), (Ids{3, 0, 4, 9}));
  EXPECT_EQ(Encoded(*t, "<a><b>", kParse), (Ids{10}));
  EXPECT_EQ(Encoded(*t, "c<b>c"), (Ids{2, 9, 2}));
}

// A vocabulary may list a merge, a whole word or a character that is a control
// token's text.
TEST(TokenizerTest, NorDoMergesOrWholeWordsMakeOne) {
  TokenizerSpec spec = ByteSpec();
  spec.tokens[7].type = TokenType::kControl;  // ab
  EXPECT_EQ(Encoded(*Made(spec), "ab"), (Ids{0, 1}));
  spec.ignore_merges = true;
  EXPECT_EQ(Encoded(*Made(spec), "ab"), (Ids{0, 1}));
  EXPECT_EQ(Encoded(*Made(spec), "ab", kParse), (Ids{7}));

  spec = ByteSpec();
  spec.kind = TokenizerSpec::Kind::kSentencePiece;
  spec.merges.clear();
  EXPECT_EQ(Encoded(*Made(spec), "ab"), (Ids{7}));
  spec.tokens[7].type = TokenType::kControl;
  EXPECT_EQ(Encoded(*Made(spec), "ab"), (Ids{0, 1}));
}

TEST(TokenizerTest, EndsOfTextAreControlWhateverTheFileSays) {
  TokenizerSpec spec = ByteSpec();
  spec.eos = 9;
  const auto t = Made(spec);
  EXPECT_TRUE(t->IsControl(9));
  EXPECT_EQ(Encoded(*t, "<b>"), (Ids{3, 1, 4}));
}

TEST(TokenizerTest, PartsAreSpelledAsOneText) {
  const auto t = Made(ByteSpec());
  Ids ids = {5};
  // "a" and "b" meet across the parts; "<a>" does not, but is whole in the
  // last.
  ASSERT_TRUE(t->Encode({{"a", kParse},
                         {"b<", kPlain},
                         {"a>", kParse},
                         {"<a>", kPlain},
                         {"<a>c", kParse}},
                        &ids)
                  .ok());
  EXPECT_EQ(ids, (Ids{5, 7, 3, 0, 4, 3, 0, 4, 8, 2}));
}

// As the added tokens of Hugging Face with lstrip and rstrip do, across parts.
TEST(TokenizerTest, TokensTakeTheSpacesBesideThem) {
  TokenizerSpec spec = ByteSpec();
  spec.tokens[8].strips_right = true;
  const auto right = Made(spec);
  EXPECT_EQ(Encoded(*right, "a <a> \n\u2003 b", kParse), (Ids{0, 6, 8, 1}));
  Ids ids;
  ASSERT_TRUE(right
                  ->Encode({{"a ", kParse},
                            {"<a> ", kParse},
                            {" ", kPlain},
                            {" b ", kPlain},
                            {" c", kPlain}},
                           &ids)
                  .ok());
  EXPECT_EQ(ids, (Ids{0, 6, 8, 1, 6, 6, 2}));
  EXPECT_EQ(Encoded(*right, "<a>   <a> ", kParse), (Ids{8, 8}));

  spec.tokens[8].strips_right = false;
  spec.tokens[8].strips_left = true;
  const auto left = Made(spec);
  EXPECT_EQ(Encoded(*left, "a\u2003 <a> b", kParse), (Ids{0, 8, 6, 1}));
  ids.clear();
  ASSERT_TRUE(
      left->Encode({{"a ", kPlain}, {" ", kPlain}, {"<a>", kParse}}, &ids)
          .ok());
  EXPECT_EQ(ids, (Ids{0, 8}));
}

// As the added tokens of Hugging Face with single_word do, across parts. Such a
// token hides what would begin within it.
TEST(TokenizerTest, TokensMayBeWholeWordsAlone) {
  TokenizerSpec spec = ByteSpec();
  spec.tokens.push_back({"b<", TokenType::kUserDefined, 0});  // 14
  spec.tokens[8].single_word = true;
  spec.tokens[14].single_word = true;
  const auto t = Made(spec);
  EXPECT_EQ(Encoded(*t, "<a> <a>", kParse), (Ids{8, 6, 8}));
  EXPECT_EQ(Encoded(*t, "<a><a>", kParse), (Ids{8, 8}));
  EXPECT_EQ(Encoded(*t, "a<a>", kParse), (Ids{0, 3, 0, 4}));
  EXPECT_EQ(Encoded(*t, "<a>a", kParse), (Ids{3, 0, 4, 0}));
  EXPECT_EQ(Encoded(*t, "b<b>"), (Ids{1, 3, 1, 4}));
  EXPECT_EQ(Encoded(*t, "ab< "), (Ids{7, 3, 6}));
  EXPECT_EQ(Encoded(*t, "b< "), (Ids{14, 6}));
  const auto parts = [&](const std::vector<Tokenizer::Part>& all) {
    Ids ids;
    EXPECT_TRUE(t->Encode(all, &ids).ok());
    return ids;
  };
  EXPECT_EQ(parts({{"c", kPlain}, {"", kPlain}, {"<a>", kParse}}),
            (Ids{2, 3, 0, 4}));
  EXPECT_EQ(parts({{"<a>", kParse}, {"c", kPlain}}), (Ids{3, 0, 4, 2}));
  EXPECT_EQ(parts({{"c ", kPlain}, {"<a>", kParse}, {" c", kPlain}}),
            (Ids{2, 6, 8, 6, 2}));
}

// As the added tokens of Hugging Face with `normalized` do under NFC: a mark
// may become one character with the last one of such a token, which is then not
// in the text.
TEST(TokenizerTest, TokensOfComposedTextAreNotBeforeMarks) {
  TokenizerSpec spec = ByteSpec();
  // The bytes of U+226F are 14 to 16; those of U+0327 are 17 and 18.
  for (const char* text : {"\u00e2", "\u012b", "\u00af", "\u00cc", "\u00a7"}) {
    spec.tokens.push_back({text, TokenType::kNormal, 0});
  }
  spec.tokens.push_back({"a<b>", TokenType::kUserDefined, 0});  // 19
  spec.nfc = true;
  spec.tokens[9].normalized = true;
  spec.tokens[19].normalized = true;
  const auto t = Made(spec);
  EXPECT_EQ(Encoded(*t, "a<b>"), (Ids{19}));
  EXPECT_EQ(Encoded(*t, "<b>c"), (Ids{9, 2}));
  EXPECT_EQ(Encoded(*t, "<b>\u0327"), (Ids{9, 17, 18}));
  EXPECT_EQ(Encoded(*t, "a<b>\u0338"), (Ids{0, 3, 1, 14, 15, 16}));
  EXPECT_EQ(Encoded(*t, "<b>\u0338<b>"), (Ids{3, 1, 14, 15, 16, 9}));
  // U+0338 is of a word, U+226F is not.
  spec.tokens[9].single_word = true;
  EXPECT_EQ(Encoded(*Made(spec), "<b>\u0338<b>"), (Ids{3, 1, 14, 15, 16, 9}));
  spec.tokens[9].normalized = false;
  EXPECT_EQ(Encoded(*Made(spec), "<b>>\u0338<b>"),
            (Ids{9, 14, 15, 16, 3, 1, 4}));
}

// Tokens of the normalised text are looked for in what the others leave,
// without the spaces that those take.
TEST(TokenizerTest, NormalizedTokensComeSecond) {
  TokenizerSpec spec = ByteSpec();
  spec.tokens.push_back({"b<", TokenType::kUserDefined, 0});  // 14
  spec.tokens.push_back({"  ", TokenType::kUserDefined, 0});  // 15
  spec.tokens[8].strips_right = true;
  EXPECT_EQ(Encoded(*Made(spec), "b<b>"), (Ids{14, 1, 4}));
  EXPECT_EQ(Encoded(*Made(spec), "<a>  b", kParse), (Ids{8, 15, 1}));
  spec.tokens[14].normalized = true;
  spec.tokens[15].normalized = true;
  EXPECT_EQ(Encoded(*Made(spec), "b<b>"), (Ids{1, 9}));
  EXPECT_EQ(Encoded(*Made(spec), "<a>  b", kParse), (Ids{8, 1}));
  EXPECT_EQ(Encoded(*Made(spec), "b<  c"), (Ids{14, 15, 2}));
  // A control token of that kind is none in plain text.
  spec.tokens[8].normalized = true;
  EXPECT_EQ(Encoded(*Made(spec), "<a>"), (Ids{3, 0, 4}));
  EXPECT_EQ(Encoded(*Made(spec), "<a>", kParse), (Ids{8}));
  EXPECT_EQ(Made(spec)->ControlNamed("<a>"), 8);
}

TEST(TokenizerTest, NothingGivesNothing) {
  const auto t = Made(ByteSpec());
  EXPECT_EQ(Encoded(*t, ""), Ids{});
  Ids ids;
  EXPECT_TRUE(t->Encode(std::vector<Tokenizer::Part>{}, &ids).ok());
  EXPECT_EQ(ids, Ids{});
  EXPECT_EQ(*t->Decode({}, kPlain), "");
}

TEST(TokenizerTest, WhatTheVocabularyCannotSpellIsAnError) {
  const auto t = Made(ByteSpec());
  Ids ids = {1, 2};
  const absl::Status s = t->Encode("abcz", kPlain, &ids);
  EXPECT_EQ(CodeOf(s), "invalid_text");
  EXPECT_NE(s.ToString().find("0x7a"), std::string::npos) << s;
  EXPECT_EQ(ids, (Ids{1, 2}));

  TokenizerSpec spec = ByteSpec();
  spec.kind = TokenizerSpec::Kind::kSentencePiece;
  spec.merges.clear();
  EXPECT_EQ(CodeOf(Made(spec)->Encode("ab\u00e9", kPlain, &ids)),
            "invalid_text");
  EXPECT_EQ(ids, (Ids{1, 2}));
}

TEST(TokenizerTest, TooManyTokensAreAnError) {
  const auto t = Made(ByteSpec());
  const EncodeLimits four = {.most_ids = 4};
  Ids ids = {0};
  EXPECT_TRUE(t->Encode("ccc", kPlain, &ids, four).ok());
  EXPECT_EQ(CodeOf(t->Encode("c", kPlain, &ids, four)), "too_long");
  EXPECT_EQ(CodeOf(t->Encode("<a>", kParse, &ids, four)), "too_long");
  EXPECT_EQ(ids, (Ids{0, 2, 2, 2}));
}

// Encoding ends soon after the limit of tokens, and reports where.
TEST(TokenizerTest, CountingEndsSoonAfterTheLimit) {
  for (const auto kind :
       {TokenizerSpec::Kind::kByteLevel, TokenizerSpec::Kind::kSentencePiece}) {
    TokenizerSpec spec = ByteSpec();
    spec.kind = kind;
    const auto t = Made(spec);
    // One piece; many pieces, if there are any; runs between words.
    for (const std::string some : {"b", "<b", "b<b>"}) {
      std::string text;
      while (text.size() < 2'000'000) text += some;
      uint64_t last = 0;
      const EncodeLimits limits = {
          .most_ids = 100'000, .progress = [&](uint64_t done, uint64_t total) {
            EXPECT_GE(done, last);
            EXPECT_EQ(total, text.size());
            last = done;
            return true;
          }};
      Ids ids;
      EXPECT_EQ(CodeOf(t->Encode(text, kPlain, &ids, limits)), "too_long");
      EXPECT_TRUE(ids.empty());
      // A token takes one byte or, for the last, two.
      EXPECT_GE(last, 100'000u) << some;
      EXPECT_LT(last, 270'000u) << some;
    }
  }
}

TEST(TokenizerTest, ACallerMayEndIt) {
  const auto t = Made(ByteSpec());
  const std::string piece(1'000'000, 'b');
  std::string words;
  while (words.size() < 1'000'000) words += "b ";
  for (const std::string& text : {piece, words, piece + "<b>" + words}) {
    int calls = 0;
    const EncodeLimits limits = {
        .progress = [&](uint64_t, uint64_t) { return ++calls < 5; }};
    Ids ids = {3};
    EXPECT_EQ(ClassOf(t->Encode(text, kPlain, &ids, limits)),
              ErrorClass::kCancelled);
    EXPECT_EQ(calls, 5);
    EXPECT_EQ(ids, Ids{3});
  }
}

TEST(TokenizerTest, PiecesAndTheirBytes) {
  const auto t = Made(ByteSpec());
  EXPECT_EQ(*t->Piece(6, kPlain), " ");
  EXPECT_EQ(*t->Piece(7, kPlain), "ab");
  EXPECT_EQ(*t->Piece(8, kPlain), "");
  EXPECT_EQ(*t->Piece(8, kParse), "<a>");
  EXPECT_EQ(*t->Piece(9, kPlain), "<b>");
  EXPECT_EQ(*t->Piece(11, kParse), "");
  EXPECT_EQ(*t->Piece(12, kPlain), "");
  EXPECT_EQ(*t->Piece(12, kParse), "<u>");
  EXPECT_EQ(*t->Piece(13, kPlain), "two words");
  EXPECT_EQ(*t->Decode({8, 7, 6, 9}, kPlain), "ab <b>");
  EXPECT_EQ(*t->Decode({8, 7, 6, 9}, kParse), "<a>ab <b>");
}

TEST(TokenizerTest, TokensOutsideTheVocabularyAreErrors) {
  const auto t = Made(ByteSpec());
  for (const int32_t id : {-1, 14, std::numeric_limits<int32_t>::max(),
                           std::numeric_limits<int32_t>::min()}) {
    EXPECT_EQ(CodeOf(t->Piece(id, kPlain).status()), "invalid_token");
    EXPECT_EQ(CodeOf(t->Decode({0, id}, kPlain).status()), "invalid_token");
    EXPECT_FALSE(t->IsControl(id));
    StreamDecoder stream(t.get());
    EXPECT_EQ(CodeOf(stream.Push(id).status()), "invalid_token");
  }
}

TEST(TokenizerTest, OnlySomeSpecialTokensAreControl) {
  const auto t = Made(ByteSpec());
  EXPECT_TRUE(t->IsControl(8));
  EXPECT_TRUE(t->IsControl(12));
  EXPECT_FALSE(t->IsControl(9));
  EXPECT_FALSE(t->IsControl(11));
}

TEST(TokenizerTest, EndsMustBeTokens) {
  for (const int32_t id : {-1, 14}) {
    TokenizerSpec spec = ByteSpec();
    spec.bos = id;
    EXPECT_EQ(CodeOf(Tokenizer::Create(spec).status()), "invalid_vocab");
    spec = ByteSpec();
    spec.eos = id;
    EXPECT_EQ(CodeOf(Tokenizer::Create(spec).status()), "invalid_vocab");
  }
  TokenizerSpec spec = ByteSpec();
  spec.bos.reset();
  spec.adds_bos = true;
  EXPECT_EQ(CodeOf(Tokenizer::Create(spec).status()), "invalid_vocab");
}

TEST(TokenizerTest, Describes) {
  EXPECT_EQ(Made(ByteSpec())->Describe(), nlohmann::json::parse(R"({
      "kind": "byte-level BPE", "pretokenizer": "gpt-2", "normalizer": "none",
      "vocab": 14, "control": 3, "user_defined": 1, "adds_bos": false,
      "bos": {"id": 8, "text": "<a>"}, "eos": {"id": 10, "text": "<a><b>"}})"));
}

// Merges go by score, not by id; of equals the leftmost is first.
TEST(SentencePieceTest, HighestScoreMergesFirst) {
  TokenizerSpec spec;
  spec.kind = TokenizerSpec::Kind::kSentencePiece;
  spec.tokens = {
      {"a", TokenType::kNormal, 0},   {"b", TokenType::kNormal, 0},
      {"c", TokenType::kNormal, 0},   {"ab", TokenType::kNormal, -2},
      {"bc", TokenType::kNormal, -1}, {"aa", TokenType::kNormal, -3},
      {"xy", TokenType::kNormal, -4}, {"ca", TokenType::kNormal, -2}};
  const auto t = Made(spec);
  EXPECT_EQ(Encoded(*t, "abc"), (Ids{0, 4}));
  EXPECT_EQ(Encoded(*t, "cab"), (Ids{7, 1}));  // "ab" scores the same
  EXPECT_EQ(Encoded(*t, "aaa"), (Ids{5, 0}));
  // Two characters that are no tokens may be one together.
  EXPECT_EQ(Encoded(*t, "axyb"), (Ids{0, 6, 1}));
}

TEST(SentencePieceTest, WhereTheSpaceInFrontGoes) {
  using Prefix = TokenizerSpec::SpacePrefix;
  TokenizerSpec spec;
  spec.kind = TokenizerSpec::Kind::kSentencePiece;
  spec.tokens = {{"a", TokenType::kNormal, 0},
                 {"\u2581", TokenType::kNormal, 0},
                 {"<t>", TokenType::kUserDefined, 0}};
  const auto encoded = [&spec](Prefix prefix, bool prefixes_spaces,
                               std::string_view text) {
    spec.space_prefix = prefix;
    spec.prefixes_spaces = prefixes_spaces;
    return Encoded(*Made(spec), text);
  };
  EXPECT_EQ(encoded(Prefix::kNone, true, "a<t>a"), (Ids{0, 2, 0}));
  EXPECT_EQ(encoded(Prefix::kText, true, "a<t>a"), (Ids{1, 0, 2, 0}));
  EXPECT_EQ(encoded(Prefix::kText, true, "<t>a"), (Ids{2, 0}));
  EXPECT_EQ(encoded(Prefix::kEachRun, true, "a<t>a"), (Ids{1, 0, 2, 1, 0}));
  EXPECT_EQ(encoded(Prefix::kEachRun, true, " a"), (Ids{1, 1, 0}));
  EXPECT_EQ(encoded(Prefix::kEachRun, false, " a"), (Ids{1, 0}));
  EXPECT_EQ(encoded(Prefix::kEachRun, true, ""), Ids{});
  EXPECT_EQ(encoded(Prefix::kEachRun, true, "<t><t>"), (Ids{2, 2}));
}

TEST(SentencePieceTest, WordsMergeApartOnlyWhereTheyAreSplit) {
  TokenizerSpec spec;
  spec.kind = TokenizerSpec::Kind::kSentencePiece;
  spec.tokens = {{"a", TokenType::kNormal, 0},
                 {"\u2581", TokenType::kNormal, 0},
                 {"a\u2581", TokenType::kNormal, -1},
                 {"\u2581\u2581", TokenType::kNormal, -2}};
  EXPECT_EQ(Encoded(*Made(spec), "a a  a"), (Ids{2, 2, 1, 0}));
  spec.splits_words = true;
  EXPECT_EQ(Encoded(*Made(spec), "a a  a"), (Ids{0, 1, 0, 1, 1, 0}));
}

TEST(SentencePieceTest, DecodingDropsTheFirstSpaceOnly) {
  TokenizerSpec spec;
  spec.kind = TokenizerSpec::Kind::kSentencePiece;
  spec.tokens = {{"a", TokenType::kNormal, 0},
                 {"\u2581", TokenType::kNormal, 0},
                 {"<s>", TokenType::kControl, 0}};
  spec.strips_prefix = true;
  const auto t = Made(spec);
  EXPECT_EQ(*t->Decode({2, 1, 1, 0, 1}, kPlain), " a ");
  EXPECT_EQ(*t->Decode({0, 1}, kPlain), "a ");
  EXPECT_EQ(*t->Decode({1}, kPlain), "");
  EXPECT_EQ(*t->Piece(1, kPlain), " ");
}

}  // namespace
}  // namespace tiercel::tokenizer_test
