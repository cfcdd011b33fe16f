// Ids against those of Hugging Face tokenizers, from tests/golden/tokens, which
// tests/golden/make_tokens.py makes.
//
//   TIERCEL_MODEL  the SmolLM2 file of make_tokens.py
//   TIERCEL_BOOKS  a folder with some of its texts
//
// Without them their tests are skipped, but fail where CI is "true".

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/system/testing.h"
#include "lib/status/error.h"
#include "lib/text/utf8.h"
#include "models/format/json.h"
#include "models/tokenizer/gguf_pres.h"
#include "models/tokenizer/nfc.h"
#include "models/tokenizer/tokenizer.h"

namespace tiercel {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<int32_t>;

constexpr Tokenizer::Special kPlain = Tokenizer::Special::kPlain;
constexpr Tokenizer::Special kParse = Tokenizer::Special::kParse;

std::optional<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Json ReadGolden(const std::string& name) {
  const std::string path = "tests/golden/tokens/" + name;
  const auto text = ReadFile(path);
  EXPECT_TRUE(text) << path;
  auto json = ParseJson(path, text.value_or("null"));
  EXPECT_TRUE(json.ok()) << json.status();
  return json.ok() ? *json : Json();
}

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(
        static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

// FNV-1a over units, as make_tokens.py has it.
class Hash {
 public:
  void Add(uint64_t unit) { value_ = (value_ ^ unit) * 0x100000001b3; }
  template <typename Units>
  void AddAll(const Units& units) {
    for (const auto unit : units) Add(unit);
  }
  std::string Hex() const {
    char text[17];
    std::snprintf(text, sizeof(text), "%016lx",
                  static_cast<unsigned long>(value_));
    return text;
  }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

std::string HashOfBytes(const std::string& bytes) {
  Hash hash;
  for (const char byte : bytes) hash.Add(static_cast<uint8_t>(byte));
  return hash.Hex();
}

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool InCi() { return Environment("CI") == "true"; }

Ids Encoded(const Tokenizer& tokenizer, const std::string& text,
            Tokenizer::Special special = kPlain) {
  Ids ids;
  const absl::Status s = tokenizer.Encode(text, special, &ids);
  EXPECT_TRUE(s.ok()) << s;
  return ids;
}

std::unique_ptr<Tokenizer> MakeTokenizer(TokenizerSpec spec) {
  auto tokenizer = Tokenizer::Create(std::move(spec));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

TokenizerSpec FamilySpec(const std::string& family) {
  const Json files = {
      {"tokenizer.json", ReadGolden(family + "/tokenizer.json")}};
  auto spec = SpecFromHuggingFace(files);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? *std::move(spec) : TokenizerSpec();
}

// Returns the vocabulary as read from GGUF, with merges or scores.
TokenizerSpec ThroughGguf(const TokenizerSpec& spec) {
  const bool bytes = spec.kind == TokenizerSpec::Kind::kByteLevel;
  std::vector<std::string> tokens, merges;
  std::vector<int64_t> types;
  std::vector<double> scores(spec.tokens.size(), -1e9);
  for (const TokenEntry& token : spec.tokens) {
    tokens.push_back(token.text);
    types.push_back(static_cast<int64_t>(token.type));
  }
  for (size_t rank = spec.merges.size(); rank-- > 0;) {
    const auto& [left, right] = spec.merges[rank];
    merges.insert(merges.begin(), left + " " + right);
    for (size_t id = 0; id < tokens.size(); ++id) {
      if (tokens[id] == left + right) scores[id] = -static_cast<double>(rank);
    }
  }
  Metadata metadata;
  metadata.Set("tokenizer.ggml.model", std::string(bytes ? "gpt2" : "llama"));
  metadata.Set("tokenizer.ggml.tokens", tokens);
  metadata.Set("tokenizer.ggml.token_type", types);
  if (bytes) {
    metadata.Set("tokenizer.ggml.pre", std::string(NameOfCuts(spec.cuts)));
    metadata.Set("tokenizer.ggml.merges", merges);
  } else {
    metadata.Set("tokenizer.ggml.scores", scores);
  }
  auto read = SpecFromGguf(metadata);
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? *std::move(read) : TokenizerSpec();
}

void ExpectCorpus(const Tokenizer& tokenizer, const Json& golden) {
  const Json corpus = ReadGolden("corpus.json");
  ASSERT_EQ(golden["plain"].size(), corpus["texts"].size());
  for (size_t i = 0; i < corpus["texts"].size(); ++i) {
    const std::string text = FromHex(corpus["texts"][i]);
    if (golden["plain"][i].is_null()) {
      Ids ids = {7};
      EXPECT_EQ(CodeOf(tokenizer.Encode(text, kPlain, &ids)), "invalid_text");
      EXPECT_EQ(ids, Ids{7});
      continue;
    }
    EXPECT_EQ(Encoded(tokenizer, text), golden["plain"][i].get<Ids>()) << text;
    EXPECT_EQ(Encoded(tokenizer, text, kParse), golden["parse"][i].get<Ids>())
        << text;
  }
}

// The text that decoding gives back for `text`: composed, if the family
// composes. In SentencePiece texts U+2581 becomes a space; Metaspace adds no
// space to a text that begins with one, but drops it.
std::string Returned(const TokenizerSpec& spec, std::string text) {
  if (spec.nfc) return ComposeNfc(text);
  if (spec.kind == TokenizerSpec::Kind::kByteLevel) return text;
  const std::string space = "\u2581";
  for (size_t at = 0; (at = text.find(space)) != std::string::npos;) {
    text.replace(at, space.size(), " ");
  }
  const bool drops = spec.space_prefix == TokenizerSpec::SpacePrefix::kText;
  return drops && text.front() == ' ' ? text.substr(1) : text;
}

// The code points that the oracle knows, and that families do not: those later
// than Unicode 15, or for Oniguruma's patterns than its own version.
std::vector<bool> Skipped(const TokenizerSpec& spec) {
  std::vector<bool> skip(0x110000);
  const Json later = ReadGolden("corpus.json")["later_than_unicode_15"];
  for (const Json& range : later) {
    for (size_t c = range[0]; c <= range[1].get<size_t>(); ++c) skip[c] = true;
  }
  for (const Cut& cut : spec.cuts) {
    if (MatcherOf(cut.pattern) != nullptr) continue;
    const Regex unassigned = *Regex::Compile(R"(\p{Cn})");
    Regex::Room room;
    for (char32_t c = 0; c < skip.size(); ++c) {
      if (c >= 0xd800 && c < 0xe000) continue;
      std::string one;
      AppendUtf8(c, &one);
      if (unassigned.Find(one, 0, &room)->begin == 0) skip[c] = true;
    }
    break;
  }
  return skip;
}

// Tests every code point, alone and between spaces.
void ExpectCodePoints(const TokenizerSpec& spec, const Json& golden) {
  const auto made = MakeTokenizer(spec);
  ASSERT_TRUE(made);
  const Tokenizer& tokenizer = *made;
  const Ids missing = golden["unspellable_bytes"];
  const std::vector<bool> skip = Skipped(spec);
  Hash hash;
  int64_t texts = 0;
  int64_t count = 0;
  Ids ids;
  for (char32_t c = 0; c < skip.size(); ++c) {
    if (skip[c] || (c >= 0xd800 && c < 0xe000)) continue;
    std::string one;
    AppendUtf8(c, &one);
    bool spells = true;
    for (const char byte : one) {
      for (const int32_t b : missing) {
        spells = spells && b != static_cast<uint8_t>(byte);
      }
    }
    for (const std::string& text : {one, " " + one + " "}) {
      ids.clear();
      const absl::Status s = tokenizer.Encode(text, kPlain, &ids);
      ASSERT_EQ(s.ok(), spells) << s << " U+" << static_cast<uint32_t>(c);
      if (!s.ok()) continue;
      ASSERT_EQ(*tokenizer.Decode(ids, kPlain), Returned(spec, text))
          << " U+" << static_cast<uint32_t>(c);
      hash.AddAll(ids);
      ++texts;
      count += static_cast<int64_t>(ids.size());
    }
  }
  EXPECT_EQ(texts, golden["code_points"]["texts"].get<int64_t>());
  EXPECT_EQ(count, golden["code_points"]["ids"].get<int64_t>());
  EXPECT_EQ(hash.Hex(), golden["code_points"]["hash"].get<std::string>());
}

// Tests the texts that are in the folder, and returns their number.
int ExpectBooks(const Tokenizer& tokenizer, const Json& golden) {
  int found = 0;
  for (const Json& book : golden["books"]) {
    const std::string path =
        Environment("TIERCEL_BOOKS") + "/" + book["file"].get<std::string>();
    const auto text = ReadFile(path);
    if (!text) continue;
    ++found;
    EXPECT_EQ(HashOfBytes(*text), book["bytes_hash"].get<std::string>())
        << path << " is another edition";
    const Ids ids = Encoded(tokenizer, *text);
    const Ids first = book["first"];
    const Ids last = book["last"];
    EXPECT_EQ(ids.size(), book["ids"].get<size_t>()) << path;
    EXPECT_GE(ids.size(), 64u);
    EXPECT_EQ(Ids(ids.begin(), ids.begin() + 64), first);
    EXPECT_EQ(Ids(ids.end() - 64, ids.end()), last);
    Hash hash;
    hash.AddAll(ids);
    EXPECT_EQ(hash.Hex(), book["hash"].get<std::string>()) << path;
    const auto back = tokenizer.Decode(ids, kPlain);
    EXPECT_TRUE(back.ok() && *back == *text) << path;
  }
  return found;
}

class FamilyTest : public testing::TestWithParam<std::string> {};

TEST_P(FamilyTest, CorpusFromTokenizerJson) {
  const auto tokenizer = MakeTokenizer(FamilySpec(GetParam()));
  ASSERT_TRUE(tokenizer);
  ExpectCorpus(*tokenizer, ReadGolden(GetParam() + ".json"));
}

TEST_P(FamilyTest, CorpusFromGguf) {
  if (GetParam() == "spm-metaspace") return;  // GGUF has no such setting
  const auto tokenizer = MakeTokenizer(ThroughGguf(FamilySpec(GetParam())));
  ASSERT_TRUE(tokenizer);
  ExpectCorpus(*tokenizer, ReadGolden(GetParam() + ".json"));
}

// SmolLm2Test also tests it, unless a sanitizer makes it slow.
TEST_P(FamilyTest, EveryCodePoint) {
  if (!TriesAll()) {
    GTEST_SKIP() << "a million texts; TIERCEL_ALL_SHAPES=1 tries them";
  }
  ExpectCodePoints(FamilySpec(GetParam()), ReadGolden(GetParam() + ".json"));
}

TEST_P(FamilyTest, Books) {
  if (Environment("TIERCEL_BOOKS").empty() && !InCi()) {
    GTEST_SKIP() << "TIERCEL_BOOKS is not set";
  }
  if (TriesLess()) GTEST_SKIP() << "the corpus has what a sanitizer can find";
  const auto tokenizer = MakeTokenizer(FamilySpec(GetParam()));
  ASSERT_TRUE(tokenizer);
  EXPECT_GT(ExpectBooks(*tokenizer, ReadGolden(GetParam() + ".json")), 0);
}

// Decode(Encode(text)) is the text, composed if the family composes. In
// SentencePiece texts U+2581 becomes a space.
TEST_P(FamilyTest, DecodingUndoesEncoding) {
  TokenizerSpec spec = FamilySpec(GetParam());
  spec.nfc = false;
  const bool bytes = spec.kind == TokenizerSpec::Kind::kByteLevel;
  const auto tokenizer = MakeTokenizer(spec);
  ASSERT_TRUE(tokenizer);
  const Json corpus = ReadGolden("corpus.json");
  std::vector<std::string> texts;
  for (const char* list : {"texts", "not_utf8"}) {
    for (const Json& hex : corpus[list]) texts.push_back(FromHex(hex));
  }
  for (int byte = 0; byte < 256; ++byte) {
    texts.push_back(std::string(1, static_cast<char>(byte)));
  }
  texts.push_back(std::string(1000, '\xff'));
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    if (c % 509 == 0) texts.emplace_back();
    if (!TriesAll() && c > 0x7ff && c % 11 != 0) continue;
    if (c < 0xd800 || c >= 0xe000) AppendUtf8(c, &texts.back());
  }
  for (const std::string& text : texts) {
    // A space is added before each run between two user-defined tokens, and
    // only the first is removed again.
    if (!bytes && (text.find("\u2581") != std::string::npos ||
                   text.find("tool>") != std::string::npos)) {
      continue;
    }
    // Metaspace adds no space to a text that begins with one, but drops it.
    if (GetParam() == "spm-metaspace" && text.substr(0, 1) == " ") continue;
    const Ids ids = Encoded(*tokenizer, text);
    const auto back = tokenizer->Decode(ids, kPlain);
    ASSERT_TRUE(back.ok()) << back.status();
    ASSERT_EQ(*back, text);
    for (const int32_t id : ids) ASSERT_FALSE(tokenizer->IsControl(id)) << text;

    StreamDecoder stream(tokenizer.get());
    std::string streamed;
    for (const int32_t id : ids) {
      const auto part = stream.Push(id);
      ASSERT_TRUE(part.ok());
      ASSERT_EQ(ReplaceInvalidUtf8(*part), *part);
      streamed += *part;
    }
    streamed += ReplaceInvalidUtf8(stream.held());
    ASSERT_EQ(streamed, ReplaceInvalidUtf8(text));
  }
}

// A pass over the whole run for each of its characters would take minutes.
TEST_P(FamilyTest, LongRunsOfOneCharacter) {
  const auto tokenizer = MakeTokenizer(FamilySpec(GetParam()));
  ASSERT_TRUE(tokenizer);
  for (const std::string one :
       {"a", " ", "'", "\n", "0", "\u3000", "\u0301", "\U0001f469\u200d"}) {
    std::string text = "x";
    while (text.size() < (TriesLess()  ? 40'000
                          : TriesAll() ? 400'000
                                       : 150'000))
      text += one;
    const Ids ids = Encoded(*tokenizer, text);
    const auto back = tokenizer->Decode(ids, kPlain);
    EXPECT_TRUE(back.ok() && *back == text) << one;
  }
}

INSTANTIATE_TEST_SUITE_P(All, FamilyTest,
                         testing::Values("gpt-2", "llama-bpe", "qwen2",
                                         "smollm", "spm", "spm-metaspace",
                                         "tekken", "gpt-4o", "qwen35",
                                         "deepseek-v3"),
                         [](const auto& family) {
                           std::string name = family.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

class SmolLm2Test : public testing::Test {
 protected:
  void SetUp() override {
    const std::string path = Environment("TIERCEL_MODEL");
    if (path.empty() && !InCi()) GTEST_SKIP() << "TIERCEL_MODEL is not set";
    auto checkpoint = Checkpoint::Open(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    auto spec = SpecFromGguf((*checkpoint)->metadata());
    ASSERT_TRUE(spec.ok()) << spec.status();
    spec_ = *std::move(spec);
    tokenizer_ = MakeTokenizer(spec_);
    ASSERT_TRUE(tokenizer_);
    golden_ = ReadGolden("smollm2.json");
  }

  TokenizerSpec spec_;
  std::unique_ptr<Tokenizer> tokenizer_;
  Json golden_;
};

TEST_F(SmolLm2Test, Corpus) {
  // The oracle has no special tokens, so it spells them.
  Json golden = golden_;
  const Json corpus = ReadGolden("corpus.json");
  for (size_t i = 0; i < corpus["texts"].size(); ++i) {
    const std::string text = FromHex(corpus["texts"][i]);
    if (text.find("<|im_") == std::string::npos) continue;
    golden["parse"][i] = Encoded(*tokenizer_, text, kParse);
  }
  ExpectCorpus(*tokenizer_, golden);
}

TEST_F(SmolLm2Test, EveryCodePoint) {
  if (!TriesAll()) GTEST_SKIP() << "a million texts; DecodingUndoesEncoding";
  ExpectCodePoints(spec_, golden_);
}

TEST_F(SmolLm2Test, Books) {
  if (Environment("TIERCEL_BOOKS").empty() && !InCi()) {
    GTEST_SKIP() << "TIERCEL_BOOKS is not set";
  }
  if (TriesLess()) GTEST_SKIP() << "the corpus has what a sanitizer can find";
  EXPECT_GT(ExpectBooks(*tokenizer_, golden_), 0);
  const Json chapter = golden_["chapter"];
  const auto text = ReadFile(Environment("TIERCEL_BOOKS") + "/" +
                             chapter["file"].get<std::string>());
  if (!text) return;
  EXPECT_EQ(Encoded(*tokenizer_, text->substr(chapter["begin"].get<size_t>(),
                                              chapter["bytes"].get<size_t>())),
            chapter["ids"].get<Ids>());
}

TEST_F(SmolLm2Test, SpecialTokensOnlyWhereTheyAreParsed) {
  const std::string text = "<|im_start|>user\nhi<|im_end|>\n";
  const Ids parsed = Encoded(*tokenizer_, text, kParse);
  EXPECT_EQ(parsed.front(), 1);
  EXPECT_EQ(parsed.end()[-2], 2);
  for (const int32_t id : Encoded(*tokenizer_, text)) {
    EXPECT_FALSE(tokenizer_->IsControl(id));
  }
  EXPECT_EQ(*tokenizer_->Decode(parsed, kPlain), "user\nhi\n");
  EXPECT_EQ(*tokenizer_->Decode(parsed, kParse), text);
}

}  // namespace
}  // namespace tiercel
