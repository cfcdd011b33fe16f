#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "models/tokenizer/gguf_pres.h"
#include "models/tokenizer/tokenizer.h"

namespace tiercel::hf_spec_test {
namespace {

using Json = nlohmann::json;

Json ByteLevel() {
  return Json::parse(R"({"tokenizer.json": {
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false,
                      "use_regex": true},
    "decoder": {"type": "ByteLevel"},
    "added_tokens": [{"id": 3, "content": "<e>", "special": true}],
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2},
              "merges": [["a", "b"]]}}})");
}

Json SentencePiece() {
  Json files = Json::parse(R"({"tokenizer.json": {
    "normalizer": {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "\u2581"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
    "pre_tokenizer": null,
    "decoder": {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
        {"type": "ByteFallback"}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
    "added_tokens": [{"id": 0, "content": "<s>", "special": true}],
    "model": {"type": "BPE", "byte_fallback": true,
              "vocab": {"<s>": 0, "a": 1, "\u2581": 2, "\u2581a": 3},
              "merges": ["\u2581 a"]}}})");
  for (int byte = 0; byte < 256; ++byte) {
    char name[7];
    std::snprintf(name, sizeof(name), "<0x%02X>", byte);
    files["tokenizer.json"]["model"]["vocab"][name] = 4 + byte;
  }
  return files;
}

Json Metaspace(const Json& stage) {
  Json files = SentencePiece();
  files["tokenizer.json"]["normalizer"] = nullptr;
  files["tokenizer.json"]["pre_tokenizer"] = stage;
  return files;
}

std::string CodeFrom(const Json& files) {
  absl::StatusOr<TokenizerSpec> spec = SpecFromHuggingFace(files);
  if (!spec.ok()) return CodeOf(spec.status());
  const auto tokenizer = Tokenizer::Create(*std::move(spec));
  return tokenizer.ok() ? "" : CodeOf(tokenizer.status());
}

// Returns the code with the value at `path` of tokenizer.json (a JSON pointer)
// replaced.
std::string CodeWith(Json files, const std::string& path, const Json& value) {
  files["tokenizer.json"][Json::json_pointer(path)] = value;
  return CodeFrom(files);
}

TokenizerSpec Spec(const Json& files) {
  auto spec = SpecFromHuggingFace(files);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? *std::move(spec) : TokenizerSpec();
}

TEST(HfSpecTest, ReadsByteLevel) {
  const TokenizerSpec spec = Spec(ByteLevel());
  EXPECT_EQ(spec.kind, TokenizerSpec::Kind::kByteLevel);
  EXPECT_EQ(NameOfCuts(spec.cuts), "gpt-2");
  ASSERT_EQ(spec.tokens.size(), 4u);
  EXPECT_EQ(spec.tokens[2].text, "ab");
  EXPECT_EQ(spec.tokens[3].type, TokenType::kControl);
  EXPECT_EQ(CodeFrom(ByteLevel()), "");
}

TEST(HfSpecTest, BothSpellingsOfMerges) {
  Json files = ByteLevel();
  files["tokenizer.json"]["model"]["merges"] = {"a b"};
  EXPECT_EQ(Spec(files).merges, Spec(ByteLevel()).merges);
  EXPECT_EQ(CodeFrom(files), "");
}

// Returns a folder whose pre_tokenizer has these stages.
Json WithStages(const Json& stages) {
  Json files = ByteLevel();
  files["tokenizer.json"]["pre_tokenizer"] = {{"type", "Sequence"},
                                              {"pretokenizers", stages}};
  return files;
}

Json Split(std::string_view pattern, const char* behavior = "Isolated",
           bool invert = false) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", std::string(pattern)}}},
          {"behavior", behavior},
          {"invert", invert}};
}

const Json kByteLevelAlone = {{"type", "ByteLevel"}, {"use_regex", false}};

std::vector<std::string> PatternsOf(const Json& files) {
  std::vector<std::string> patterns;
  for (const Cut& cut : Spec(files).cuts) patterns.push_back(cut.pattern);
  return patterns;
}

TEST(HfSpecTest, RecognisesThePipelinesOfTheFamilies) {
  for (const GgufPre& pre : AllGgufPres()) {
    Json stages;
    for (const Cut& cut : pre.cuts) stages.push_back(Split(cut.pattern));
    stages.push_back(kByteLevelAlone);
    EXPECT_EQ(NameOfCuts(Spec(WithStages(stages)).cuts), NameOfCuts(pre.cuts));
  }
  EXPECT_EQ(NameOfCuts(Spec(WithStages(Json::parse(R"([
              {"type": "Digits", "individual_digits": true},
              {"type": "ByteLevel", "use_regex": true}])")))
                           .cuts),
            "smollm");
  EXPECT_EQ(NameOfCuts(Spec(WithStages(Json::parse(R"([
              {"type": "Punctuation", "behavior": "Contiguous"},
              {"type": "ByteLevel"},
              {"type": "Split", "pattern": {"Regex": "[0-9][0-9][0-9]"},
               "behavior": "Isolated", "invert": false}])")))
                           .cuts),
            "falcon");
}

TEST(HfSpecTest, ReadsStagesOfAnyPattern) {
  using V = std::vector<std::string>;
  EXPECT_EQ(PatternsOf(WithStages({Split("\\w+"), kByteLevelAlone})),
            V{"\\w+"});
  EXPECT_EQ(NameOfCuts(Spec(WithStages({Split("\\w+"), kByteLevelAlone})).cuts),
            "custom");
  EXPECT_EQ(
      PatternsOf(WithStages({Split("ab", "Contiguous"), kByteLevelAlone})),
      V{"(?:ab)+"});
  EXPECT_EQ(PatternsOf(WithStages({Json::parse(R"({
              "type": "Split", "pattern": {"String": "a.b"},
              "behavior": "Isolated", "invert": false})"),
                                   kByteLevelAlone})),
            V{"a\\.b"});
  EXPECT_EQ(
      PatternsOf(WithStages({{{"type", "Digits"}, {"individual_digits", false}},
                             {{"type", "Punctuation"}},
                             kByteLevelAlone})),
      (V{"\\p{N}+", R"([\p{P}\$\+<=>\^~\|`])"}));
  const Json whole = WithStages({Split("a", "Removed", true), kByteLevelAlone});
  EXPECT_TRUE(Spec(whole).cuts[0].is_all);
  EXPECT_FALSE(Spec(WithStages({Split("a"), kByteLevelAlone})).cuts[0].is_all);
}

TEST(HfSpecTest, RefusesStagesThatItDoesNotKnow) {
  const auto code = [](const Json& stages) {
    return CodeFrom(WithStages(stages));
  };
  EXPECT_EQ(code({Split("a"), kByteLevelAlone}), "");
  for (const Json& stages :
       {Json{Split("a", "MergedWithNext"), kByteLevelAlone},
        Json{Split("a", "Removed"), kByteLevelAlone},
        Json{Split("a", "Contiguous", true), kByteLevelAlone},
        Json{{{"type", "Split"}, {"behavior", "Isolated"}}, kByteLevelAlone},
        Json{{{"type", "Whitespace"}}, kByteLevelAlone},
        Json{kByteLevelAlone, kByteLevelAlone},
        Json{kByteLevelAlone, Split("a")}, Json{Split("a")},
        Json{Split("a"),
             {{"type", "ByteLevel"}, {"add_prefix_space", true}}}}) {
    EXPECT_EQ(code(stages), "unsupported_tokenizer") << stages;
  }
}

TEST(HfSpecTest, NestedSequencesAreOneSequence) {
  Json files = ByteLevel();
  Json& stage = files["tokenizer.json"]["pre_tokenizer"];
  for (int depth = 0; depth < 30; ++depth) {
    stage = Json{{"type", "Sequence"}, {"pretokenizers", Json::array({stage})}};
  }
  EXPECT_EQ(CodeFrom(files), "");
  stage = {{"type", "Sequence"}, {"pretokenizers", "Sequence"}};
  EXPECT_EQ(CodeFrom(files), "unsupported_tokenizer");
  stage = {{"type", "Sequence"}};
  EXPECT_EQ(CodeFrom(files), "unsupported_tokenizer");
}

TEST(HfSpecTest, ReadsSentencePiece) {
  const TokenizerSpec spec = Spec(SentencePiece());
  EXPECT_EQ(spec.kind, TokenizerSpec::Kind::kSentencePiece);
  EXPECT_EQ(spec.space_prefix, TokenizerSpec::SpacePrefix::kEachRun);
  EXPECT_TRUE(spec.prefixes_spaces);
  EXPECT_TRUE(spec.strips_prefix);
  EXPECT_FALSE(spec.splits_words);
  EXPECT_EQ(spec.tokens[4].type, TokenType::kByte);
  EXPECT_EQ(CodeFrom(SentencePiece()), "");
}

// As Gemma has it.
TEST(HfSpecTest, NoSpaceIsLeftToCutAt) {
  Json files = SentencePiece();
  Json& stage = files["tokenizer.json"]["pre_tokenizer"];
  EXPECT_TRUE(stage.is_null());
  stage = {{"type", "Split"},
           {"pattern", {{"String", " "}}},
           {"behavior", "MergedWithPrevious"},
           {"invert", false}};
  EXPECT_EQ(CodeFrom(files), "");
  stage["pattern"]["String"] = "a";
  EXPECT_EQ(CodeFrom(files), "unsupported_tokenizer");
}

TEST(HfSpecTest, ReadsMetaspaceInItsForms) {
  const std::string space = "\u2581";
  TokenizerSpec spec = Spec(Metaspace({{"type", "Metaspace"},
                                       {"replacement", space},
                                       {"prepend_scheme", "first"},
                                       {"split", false}}));
  EXPECT_EQ(spec.space_prefix, TokenizerSpec::SpacePrefix::kText);
  EXPECT_FALSE(spec.prefixes_spaces);
  EXPECT_FALSE(spec.splits_words);
  spec = Spec(Metaspace({{"type", "Metaspace"},
                         {"replacement", space},
                         {"prepend_scheme", "never"}}));
  EXPECT_EQ(spec.space_prefix, TokenizerSpec::SpacePrefix::kNone);
  EXPECT_TRUE(spec.splits_words);
  spec = Spec(Metaspace({{"type", "Metaspace"},
                         {"replacement", space},
                         {"add_prefix_space", true}}));
  EXPECT_EQ(spec.space_prefix, TokenizerSpec::SpacePrefix::kEachRun);
  spec = Spec(Metaspace({{"type", "Metaspace"},
                         {"replacement", space},
                         {"add_prefix_space", false}}));
  EXPECT_EQ(spec.space_prefix, TokenizerSpec::SpacePrefix::kNone);
  EXPECT_EQ(CodeFrom(Metaspace({{"type", "Metaspace"},
                                {"replacement", space},
                                {"prepend_scheme", "often"}})),
            "unsupported_tokenizer");
  EXPECT_EQ(CodeFrom(Metaspace({{"type", "Metaspace"}, {"replacement", "_"}})),
            "unsupported_tokenizer");
  EXPECT_EQ(CodeFrom(Metaspace(nullptr)), "unsupported_tokenizer");
}

// Decoding removes the prefix that encoding adds.
TEST(HfSpecTest, AMetaspaceThatDecodesStripsItsPrefix) {
  Json files = Metaspace({{"type", "Metaspace"}, {"replacement", "\u2581"}});
  Json& decoder = files["tokenizer.json"]["decoder"];
  for (const char* scheme : {"first", "always", "never"}) {
    decoder = {{"type", "Metaspace"}, {"prepend_scheme", scheme}};
    EXPECT_EQ(Spec(files).strips_prefix, std::string(scheme) != "never");
  }
}

TEST(HfSpecTest, EndsOfText) {
  Json files = ByteLevel();
  EXPECT_EQ(Spec(files).bos, std::nullopt);
  EXPECT_FALSE(Spec(files).adds_bos);

  files["config.json"] = {{"bos_token_id", 3}, {"eos_token_id", {2, 1}}};
  EXPECT_EQ(Spec(files).bos, 3);
  EXPECT_EQ(Spec(files).eos, 2);
  EXPECT_FALSE(Spec(files).adds_bos);
  files["config.json"] = {{"bos_token_id", 4}, {"eos_token_id", -1}};
  EXPECT_EQ(Spec(files).bos, std::nullopt);
  EXPECT_EQ(Spec(files).eos, std::nullopt);

  files["tokenizer.json"]["post_processor"] = Json::parse(R"({
    "type": "Sequence", "processors": [
      {"type": "ByteLevel"},
      {"type": "TemplateProcessing",
       "single": [{"SpecialToken": {"id": "<e>", "type_id": 0}},
                  {"Sequence": {"id": "A", "type_id": 0}}]}]})");
  EXPECT_EQ(Spec(files).bos, 3);
  EXPECT_TRUE(Spec(files).adds_bos);
  files["tokenizer_config.json"] = {{"add_bos_token", false},
                                    {"eos_token", {{"content", "b"}}}};
  EXPECT_FALSE(Spec(files).adds_bos);
  EXPECT_EQ(Spec(files).eos, 1);
  files["tokenizer_config.json"] = {{"add_bos_token", true},
                                    {"bos_token", "ab"}};
  EXPECT_EQ(Spec(files).bos, 2);
  EXPECT_TRUE(Spec(files).adds_bos);
}

TEST(HfSpecTest, AddedTokens) {
  Json files = ByteLevel();
  Json& added = files["tokenizer.json"]["added_tokens"];
  added.push_back({{"id", 4}, {"content", "<t>"}, {"special", false}});
  // A text of the vocabulary keeps its id.
  added.push_back({{"id", 9}, {"content", "ab"}, {"special", true}});
  const TokenizerSpec spec = Spec(files);
  ASSERT_EQ(spec.tokens.size(), 5u);
  EXPECT_EQ(spec.tokens[2].type, TokenType::kControl);
  EXPECT_EQ(spec.tokens[4].type, TokenType::kUserDefined);
  EXPECT_FALSE(spec.tokens[4].single_word);
  added[1]["single_word"] = true;
  EXPECT_TRUE(Spec(files).tokens[4].single_word);
  added[1]["lstrip"] = true;
  EXPECT_TRUE(Spec(files).tokens[4].strips_left);
  EXPECT_FALSE(Spec(files).tokens[4].strips_right);
  added[1]["lstrip"] = false;
  added[1]["rstrip"] = true;
  EXPECT_FALSE(Spec(files).tokens[4].strips_left);
  EXPECT_TRUE(Spec(files).tokens[4].strips_right);
  // The flag matters only if there is a normaliser.
  EXPECT_EQ(CodeWith(files, "/added_tokens/1/normalized", true), "");
  files["tokenizer.json"]["normalizer"] = {{"type", "NFC"}};
  EXPECT_TRUE(Spec(files).nfc);
  EXPECT_FALSE(Spec(files).tokens[4].normalized);
  added[1]["normalized"] = true;
  EXPECT_TRUE(Spec(files).tokens[4].normalized);
  EXPECT_EQ(CodeWith(files, "/added_tokens/1/content", "<é>"),
            "unsupported_tokenizer");
}

// As the library `tokenizers` has it: a text of the vocabulary keeps its id,
// and others follow in order, whatever the file says.
TEST(HfSpecTest, AddedTokensAreNumberedInOrder) {
  const auto ids_of = [](const Json& added, Json files = ByteLevel()) {
    files["tokenizer.json"]["added_tokens"] = added;
    std::vector<std::pair<std::string, int32_t>> ids;
    const TokenizerSpec spec = Spec(files);
    for (size_t i = 3; i < spec.tokens.size(); ++i) {
      if (spec.tokens[i].type == TokenType::kUnused) continue;
      ids.emplace_back(spec.tokens[i].text, i);
    }
    return ids;
  };
  const auto token = [](int id, const char* text, bool lstrip = false) {
    return Json{{"id", id}, {"content", text}, {"lstrip", lstrip}};
  };
  using Ids = std::vector<std::pair<std::string, int32_t>>;
  const Ids both = {{"<x>", 3}, {"<y>", 4}};
  EXPECT_EQ(ids_of({token(9, "<x>"), token(12, "<y>")}), both);
  EXPECT_EQ(ids_of({token(4, "<x>"), token(3, "<y>")}), both);
  EXPECT_EQ(ids_of({token(2, "<x>"), token(2, "<y>")}), both);
  EXPECT_EQ(ids_of({token(3, ""), token(3, "<x>"), token(9, "ab"),
                    token(4, "<x>"), token(5, "<y>")}),
            both);
  // A gap of the vocabulary moves what follows.
  Json gap = ByteLevel();
  gap["tokenizer.json"]["model"]["vocab"]["c"] = 7;
  EXPECT_EQ(ids_of(Json::array({token(8, "<x>")}), gap),
            (Ids{{"<x>", 4}, {"c", 7}}));
  gap["tokenizer.json"]["model"]["vocab"]["c"] = 4;
  EXPECT_EQ(SpecFromHuggingFace(gap).status().message(),
            "tokenizer.json: added token \"<e>\" follows 4 others, but token 4 "
            "is \"c\"; need a vocabulary without gaps");
}

// The second listing of a token counts, but a special one stays special.
TEST(HfSpecTest, TokensListedTwice) {
  Json files = ByteLevel();
  Json& added = files["tokenizer.json"]["added_tokens"];
  added.push_back({{"id", 3}, {"content", "<e>"}, {"lstrip", true}});
  const TokenizerSpec spec = Spec(files);
  EXPECT_TRUE(spec.tokens[3].strips_left);
  EXPECT_EQ(spec.tokens[3].type, TokenType::kControl);
}

// Metaspace is no normaliser; Prepend would change a token, and Replace one
// with a space.
TEST(HfSpecTest, NormalizedTokensOfSentencePiece) {
  const auto code = [](Json files, const char* text) {
    files["tokenizer.json"]["added_tokens"].push_back(
        {{"id", 260}, {"content", text}, {"normalized", true}});
    return CodeFrom(files);
  };
  EXPECT_EQ(code(SentencePiece(), "<t>"), "");
  Json gemma = SentencePiece();
  gemma["tokenizer.json"]["normalizer"]["normalizers"].erase(0);
  EXPECT_EQ(code(gemma, "<t>"), "");
  EXPECT_EQ(code(gemma, "< t>"), "");
  const Json metaspace =
      Metaspace({{"type", "Metaspace"}, {"replacement", "\u2581"}});
  EXPECT_EQ(code(metaspace, "< t>"), "");
  for (const char* flag : {"lstrip", "rstrip", "single_word"}) {
    Json files = SentencePiece();
    files["tokenizer.json"]["added_tokens"].push_back(
        {{"id", 260}, {"content", "<t>"}, {"normalized", true}, {flag, true}});
    EXPECT_EQ(CodeFrom(files), "unsupported_tokenizer") << flag;
  }
}

// A token that the normaliser changes is found as it becomes: behind the space
// that Prepend adds, or another. It is a word of its run, and decodes to its
// own text.
TEST(HfSpecTest, NormalizedTokensAreFoundInNormalizedText) {
  using Ids = std::vector<int32_t>;
  const auto encoded = [](const Json& files, std::string_view text) {
    const auto tokenizer = Tokenizer::Create(Spec(files));
    Ids ids;
    EXPECT_TRUE(
        (*tokenizer)->Encode(text, Tokenizer::Special::kPlain, &ids).ok());
    return ids;
  };
  Json files = SentencePiece();  // "\u2581" is 2, and "\u2581a" 3
  files["tokenizer.json"]["model"]["vocab"]["<"] = 260;
  files["tokenizer.json"]["added_tokens"].push_back(
      {{"id", 261}, {"content", "<"}, {"normalized", true}});
  files["tokenizer.json"]["added_tokens"].push_back(
      {{"id", 262}, {"content", "a a"}, {"normalized", true}});
  EXPECT_EQ(encoded(files, "<a <a<"), (Ids{260, 1, 260, 1, 4 + '<'}));
  EXPECT_EQ(encoded(files, "<a a"), (Ids{260, 1, 3}));
  EXPECT_EQ(encoded(files, "a a a"), (Ids{261, 3}));
  const auto tokenizer = Tokenizer::Create(Spec(files));
  EXPECT_EQ(*(*tokenizer)->Decode({1, 260, 261}, Tokenizer::Special::kPlain),
            "a<a a");
  files["tokenizer.json"]["normalizer"]["normalizers"].erase(0);
  EXPECT_EQ(encoded(files, "<a a a"), (Ids{260, 261, 3}));
  EXPECT_EQ(encoded(files,
                    "a\u2581"
                    "a"),
            Ids{261});
}

// As transformers has it: special_tokens_map.json counts unless
// tokenizer_config.json has an added_tokens_decoder.
TEST(HfSpecTest, SideFilesNameTheEnds) {
  Json files = ByteLevel();
  files["config.json"] = {{"bos_token_id", 0}, {"eos_token_id", 1}};
  files["special_tokens_map.json"] = {{"bos_token", {{"content", "<e>"}}},
                                      {"eos_token", "ab"}};
  EXPECT_EQ(Spec(files).bos, 3);
  EXPECT_EQ(Spec(files).eos, 2);
  EXPECT_EQ(Spec(files).tokens[2].type, TokenType::kControl);
  files["tokenizer_config.json"] = {{"eos_token", "b"}};
  EXPECT_EQ(Spec(files).eos, 2);
  files["tokenizer_config.json"]["added_tokens_decoder"] = Json::object();
  EXPECT_EQ(Spec(files).eos, 1);
  EXPECT_EQ(Spec(files).bos, std::nullopt);
  // An absent field has the class's default, a null one stands for none.
  files = ByteLevel();
  files["config.json"] = {{"bos_token_id", 0}, {"eos_token_id", 1}};
  files["tokenizer.json"]["added_tokens"][0]["content"] = "<|endoftext|>";
  files["tokenizer_config.json"] = {{"tokenizer_class", "GPT2TokenizerFast"}};
  EXPECT_EQ(Spec(files).bos, 3);
  EXPECT_EQ(Spec(files).eos, 3);
  files["tokenizer_config.json"]["bos_token"] = nullptr;
  EXPECT_EQ(Spec(files).bos, std::nullopt);
  EXPECT_EQ(Spec(files).eos, 3);
  files["tokenizer_config.json"] = {
      {"tokenizer_class", "PreTrainedTokenizerFast"}};
  EXPECT_EQ(Spec(files).bos, std::nullopt);
  EXPECT_EQ(Spec(files).eos, std::nullopt);
  files["config.json"]["model_type"] = "qwen2";
  files["tokenizer_config.json"] = Json::object();
  EXPECT_EQ(Spec(files).bos, std::nullopt);
  EXPECT_EQ(Spec(files).eos, 3);
}

TEST(HfSpecTest, SideFilesAddTokens) {
  Json files = ByteLevel();
  files["tokenizer_config.json"]["added_tokens_decoder"] = {
      {"2", {{"content", "ab"}, {"special", true}}},
      {"3", {{"content", "<e>"}, {"special", false}}},
      {"4", {{"content", "<new>"}, {"special", true}}},
      {"100", {{"content", "<last>"}, {"special", false}}},
      {"9", {{"content", "b"}, {"special", false}}},
      {"90", {{"content", "<next>"}, {"special", false}}}};
  const TokenizerSpec spec = Spec(files);
  ASSERT_EQ(spec.tokens.size(), 7u);
  EXPECT_EQ(spec.tokens[2].type, TokenType::kControl);
  EXPECT_EQ(spec.tokens[3].type, TokenType::kControl);  // it was one
  EXPECT_EQ(spec.tokens[5].text, "<next>");
  EXPECT_EQ(spec.tokens[6].text, "<last>");
  EXPECT_EQ(spec.tokens[4].text, "<new>");
  EXPECT_EQ(spec.tokens[4].type, TokenType::kControl);
  EXPECT_EQ(spec.tokens[1].type, TokenType::kUserDefined);  // its id is 1
  Json& fourth = files["tokenizer_config.json"]["added_tokens_decoder"]["4"];
  fourth["lstrip"] = true;
  EXPECT_TRUE(Spec(files).tokens[4].strips_left);
  fourth["single_word"] = true;
  EXPECT_TRUE(Spec(files).tokens[4].single_word);

  // Before that there was a file of ids.
  files = ByteLevel();
  files["added_tokens.json"] = {{"<new>", 4}, {"<word>", 5}};
  files["tokenizer_config.json"] = {
      {"pad_token", "<new>"},
      {"unk_token", "<of no row>"},
      {"additional_special_tokens", {"a", {{"content", "b"}}}}};
  ASSERT_EQ(Spec(files).tokens.size(), 6u);
  EXPECT_EQ(Spec(files).tokens[4].type, TokenType::kControl);
  EXPECT_EQ(Spec(files).tokens[5].type, TokenType::kUserDefined);
  EXPECT_EQ(Spec(files).tokens[0].type, TokenType::kControl);
  EXPECT_EQ(Spec(files).tokens[1].type, TokenType::kControl);
}

TEST(HfSpecTest, ReadsVocabAndMerges) {
  Json files = {
      {"vocab.json", {{"a", 0}, {"b", 1}, {"ab", 2}, {"<|endoftext|>", 3}}},
      {"merges.txt", "#version: 0.2\na b\r\n\n"},
      {"tokenizer_config.json", {{"eos_token", "<|endoftext|>"}}}};
  EXPECT_EQ(NameOfCuts(Spec(files).cuts), "gpt-2");
  EXPECT_FALSE(Spec(files).nfc);
  EXPECT_EQ(Spec(files).eos, 3);
  EXPECT_EQ(Spec(files).tokens[3].type, TokenType::kControl);
  EXPECT_EQ(Spec(files).merges,
            (std::vector<std::pair<std::string, std::string>>{{"a", "b"}}));
  EXPECT_EQ(CodeFrom(files), "");
  files["tokenizer_config.json"]["tokenizer_class"] = "Qwen2Tokenizer";
  EXPECT_EQ(NameOfCuts(Spec(files).cuts), "qwen2");
  EXPECT_TRUE(Spec(files).nfc);
  files["merges.txt"] = "a b c\n";
  EXPECT_EQ(CodeFrom(files), "invalid_vocab");
  // Half of it is named.
  for (const auto& [there, missing] : {std::pair("vocab.json", "merges.txt"),
                                       std::pair("merges.txt", "vocab.json")}) {
    Json half = files;
    half.erase(missing);
    const absl::Status status = SpecFromHuggingFace(half).status();
    EXPECT_EQ(CodeOf(status), "no_tokenizer");
    EXPECT_NE(status.message().find(absl::StrCat(there, " without ", missing)),
              absl::string_view::npos)
        << status;
  }
}

TEST(HfSpecTest, RefusesOtherPipelines) {
  EXPECT_EQ(CodeFrom(Json()), "no_tokenizer");
  EXPECT_EQ(CodeFrom({{"tokenizer.json", nullptr}}), "no_tokenizer");
  const Json lowercase = {{"type", "Lowercase"}};
  const Json suffix = "</w>";
  for (const Json& files : {ByteLevel(), SentencePiece()}) {
    EXPECT_EQ(CodeWith(files, "/model/type", "Unigram"),
              "unsupported_tokenizer");
    EXPECT_EQ(CodeWith(files, "/model/dropout", 0.1), "unsupported_tokenizer");
    EXPECT_EQ(CodeWith(files, "/model/dropout", 0.0), "");
    EXPECT_EQ(CodeWith(files, "/model/dropout", 0), "");
    EXPECT_EQ(CodeWith(files, "/model/end_of_word_suffix", suffix),
              "unsupported_tokenizer");
    EXPECT_EQ(CodeWith(files, "/model/end_of_word_suffix", ""), "");
    EXPECT_EQ(CodeWith(files, "/normalizer", lowercase),
              "unsupported_tokenizer");
    EXPECT_EQ(CodeWith(files, "/decoder", {{"type", "WordPiece"}}),
              "unsupported_tokenizer");
    EXPECT_EQ(CodeWith(files, "/pre_tokenizer", {{"type", "Whitespace"}}),
              "unsupported_tokenizer");
  }
}

TEST(HfSpecTest, RunsOfAByteLevelVocabularyMayBeginWithASpace) {
  Json files = ByteLevel();
  files["tokenizer.json"]["model"]["vocab"]["\u0120"] = 3;
  files["tokenizer.json"]["pre_tokenizer"]["add_prefix_space"] = true;
  using Ids = std::vector<int32_t>;
  const auto encoded = [&](std::string_view text) {
    const auto tokenizer = Tokenizer::Create(Spec(files));
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    Ids ids;
    EXPECT_TRUE(
        (*tokenizer)->Encode(text, Tokenizer::Special::kParse, &ids).ok());
    return ids;
  };
  for (const Json& normalizer : {Json(), Json{{"type", "NFC"}}}) {
    files["tokenizer.json"]["normalizer"] = normalizer;
    EXPECT_EQ(encoded("ab<e>a<e> b"), (Ids{3, 2, 4, 3, 0, 4, 3, 1}));
    EXPECT_EQ(encoded("  a"), (Ids{3, 3, 0}));
    EXPECT_EQ(encoded(""), Ids());
  }
  files["tokenizer.json"]["pre_tokenizer"]["add_prefix_space"] = false;
  EXPECT_EQ(encoded("ab"), Ids{2});
}

TEST(HfSpecTest, ByteLevelNeedsNoDecoder) {
  const Json bytes = {{"type", "ByteLevel"}};
  const Json fuse = {{"type", "Fuse"}};
  const auto sequence = [](Json stages) {
    return Json{{"type", "Sequence"}, {"decoders", std::move(stages)}};
  };
  for (const Json& decoder :
       {Json(), bytes, sequence({bytes, fuse}), sequence({fuse, bytes})}) {
    EXPECT_EQ(CodeWith(ByteLevel(), "/decoder", decoder), "") << decoder;
  }
  EXPECT_EQ(
      CodeWith(ByteLevel(), "/decoder", sequence({bytes, {{"type", "Strip"}}})),
      "unsupported_tokenizer");
}

TEST(HfSpecTest, VocabularyMustBeWhole) {
  const auto code = [](const std::string& path, const Json& value) {
    return CodeWith(ByteLevel(), path, value);
  };
  EXPECT_EQ(code("/model/vocab", Json::object()), "invalid_vocab");
  EXPECT_EQ(code("/model/vocab", Json::array({"a"})), "invalid_vocab");
  for (const Json& id : {Json(-1), Json(1.5), Json("1"), Json(nullptr),
                         Json(kMostVocab), Json(uint64_t{1} << 63)}) {
    EXPECT_EQ(code("/model/vocab/c", id), "invalid_vocab") << id;
    EXPECT_EQ(code("/added_tokens/0/id", id), "invalid_vocab") << id;
  }
  EXPECT_EQ(code("/model/vocab/c", 2), "invalid_vocab");
  Json twice = ByteLevel();
  twice["tokenizer.json"]["model"]["vocab"]["x"] = 5;
  EXPECT_EQ(CodeFrom(twice), "");
  EXPECT_EQ(CodeWith(twice, "/model/vocab/y", 5), "invalid_vocab");
  EXPECT_EQ(code("/added_tokens/0/content", 1), "invalid_vocab");
  EXPECT_EQ(code("/added_tokens", "none"), "invalid_vocab");
  EXPECT_EQ(code("/added_tokens/0", 7), "invalid_vocab");
}

TEST(HfSpecTest, MergesMustBePairsOfTokens) {
  const Json bad[] = {
      "ab",      "",        " ", "a ",    " b",  "a  b",          "a b a",
      "a c",     "b a",     7,   nullptr, {"a"}, {"a", "b", "a"}, {"a", 1},
      {"", "b"}, {"a", "c"}};
  for (const Json& merge : bad) {
    EXPECT_EQ(CodeWith(ByteLevel(), "/model/merges", Json::array({merge})),
              "invalid_vocab")
        << merge;
  }
  EXPECT_EQ(CodeWith(ByteLevel(), "/model/merges", "a b"), "invalid_vocab");
}

TEST(HfSpecTest, ByteTokensAreAllThereOrNone) {
  Json files = SentencePiece();
  files["tokenizer.json"]["model"]["vocab"].erase("<0x7F>");
  EXPECT_EQ(CodeFrom(files), "invalid_vocab");
}

}  // namespace
}  // namespace tiercel::hf_spec_test
