#include "models/tokenizer/gguf_pres.h"

#include <algorithm>
#include <initializer_list>

#include "absl/strings/str_join.h"

namespace tiercel {
namespace {

using Cuts = std::vector<Cut>;

std::string Join(std::initializer_list<std::string_view> parts) {
  std::string joined;
  for (const std::string_view part : parts) joined.append(part);
  return joined;
}

// Parts that several families' patterns have.
constexpr std::string_view kContraction = R"((?i:'s|'t|'re|'ve|'m|'ll|'d))";
constexpr std::string_view kUpper = R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])";
constexpr std::string_view kLower = R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])";
constexpr std::string_view kBeforeWord = R"([^\r\n\p{L}\p{N}]?)";
constexpr std::string_view kWord = R"([^\r\n\p{L}\p{N}]?\p{L}+)";
constexpr std::string_view kSymbols = R"( ?[^\s\p{L}\p{N}]+)";
constexpr std::string_view kSpaces = R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kThreeNumbers = R"(\p{N}{1,3})";
constexpr std::string_view kChineseAndKana =
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+";
constexpr std::string_view kChineseAndKorean =
    "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+";
// Letters of alphabets that have two cases.
constexpr std::string_view kCasedLetters =
    "[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf"
    "\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f"
    "\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481"
    "\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd"
    "\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a"
    "\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59"
    "\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4"
    "\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4"
    "\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126"
    "\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e"
    "\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3"
    "\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e"
    "\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a"
    "\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb"
    "\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df"
    "\U0001e900-\U0001e943]";
constexpr std::string_view kWideMarks =
    "[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]";

// Words whose case changes once at most, from upper to lower, with `suffix`.
std::string CasedWords(std::string_view upper, std::string_view lower,
                       std::string_view suffix) {
  return Join({kBeforeWord, upper, "*", lower, "+", suffix, "|", kBeforeWord,
               upper, "+", lower, "*", suffix, "|"});
}

std::string Tekken() {
  return Join({CasedWords(kUpper, kLower, ""), kNumberPattern, "|", kSymbols,
               R"([\r\n/]*|)", kSpaces});
}

std::string O200k() {
  return Join({CasedWords(kUpper, kLower, Join({kContraction, "?"})),
               kThreeNumbers, "|", kSymbols, R"([\r\n/]*|)", kSpaces});
}

std::string KimiK2() {
  return Join({R"([\p{Han}]+|)",
               CasedWords(R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]])",
                          R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]])",
                          Join({kContraction, "?"})),
               kThreeNumbers, "|", kSymbols, R"([\r\n]*|)", kSpaces});
}

std::string DeepseekWords() {
  return Join({R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|)",
               R"([^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+)",
               R"([\r\n]*|)", kSpaces});
}

// A pattern like Llama 3's: contractions, words, then `rest`.
std::string ContractionsAndWords(std::string_view rest) {
  return Join({kContraction, "|", kWord, "|", rest});
}

Cuts Of(std::initializer_list<std::string_view> patterns) {
  Cuts cuts;
  for (const std::string_view pattern : patterns) {
    cuts.push_back({std::string(pattern)});
  }
  return cuts;
}

// The names are those that llama.cpp's converter writes (src/llama-vocab.cpp).
// GGUF does not carry the normaliser: `nfc` follows the family's
// tokenizer.json, as the patterns do.
std::vector<GgufPre> MakeAll() {
  const Cuts gpt2 = Of({kGpt2Pattern});
  const Cuts llama3 = Of({kLlama3Pattern});
  const Cuts qwen2 = Of({kQwen2Pattern});
  const Cuts smollm = Of({kNumberPattern, kGpt2Pattern});
  const Cuts tekken = Of({Tekken()});
  const Cuts o200k = Of({O200k()});
  const Cuts deepseek_v3 =
      Of({kThreeNumbers, kChineseAndKana, DeepseekWords()});
  const Cuts bloom =
      Of({" ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"});
  return {
      {.names = {"gpt-2", "phi-2", "jais", "gigachat", "a.x-4.0", "mellum",
                 "modern-bert", "exaone4", "trillion", "granite-docling",
                 "jina-es", "jina-de", "jina-v1-en", "jina-v2-es", "jina-v2-de",
                 "jina-v2-code", "roberta-bpe"},
       .cuts = gpt2},
      {.names = {"mpt", "olmo"}, .cuts = gpt2, .nfc = true},
      {.names = {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1",
                 "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"},
       .cuts = llama3,
       .ignore_merges = true,
       .adds_bos = true},
      {.names = {"glm4", "glm5"}, .cuts = llama3, .ignore_merges = true},
      {.names = {"chatglm-bpe", "smaug-bpe", "dbrx"}, .cuts = llama3},
      {.names = {"qwen2"}, .cuts = qwen2, .nfc = true},
      {.names = {"deepseek-r1-qwen", "megrez", "kormo", "f2llmv2", "stablelm2",
                 "hunyuan", "solar-open", "grok-2"},
       .cuts = qwen2},
      {.names = {"qwen35"},
       .cuts = Of({Join({kContraction, R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|)",
                         kNumberPattern, R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)",
                         kSpaces})})},
      {.names = {"smollm", "starcoder", "refact", "codeshell", "exaone",
                 "minerva-7b", "mellum2"},
       .cuts = smollm},
      {.names = {"command-r"}, .cuts = smollm, .nfc = true},
      {.names = {"tekken"},
       .cuts = tekken,
       .ignore_merges = true,
       .adds_bos = true},
      {.names = {"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"},
       .cuts = o200k},
      {.names = {"tiny_aya", "cohere2moe"},
       .cuts = Of({R"(\d{1,3}(?=(?:\d{3})*\b))", O200k()})},
      {.names = {"kimi-k2"}, .cuts = Of({KimiK2()})},
      {.names = {"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"},
       .cuts = deepseek_v3},
      {.names = {"deepseek-llm"},
       .cuts = Of({"[\r\n]", Join({"\\s?", kCasedLetters, "+"}),
                   Join({"\\s?", kWideMarks, "+"}), R"(\s+$)",
                   kChineseAndKorean, R"(\p{N}+)"})},
      {.names = {"deepseek-coder"},
       .cuts = Of({"[\r\n]", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kChineseAndKorean,
                   kNumberPattern})},
      {.names = {"falcon"},
       .cuts = Of({kMarksPattern, kGpt2Pattern, kThreeDigitsPattern})},
      {.names = {"default"},
       .cuts = Of({R"([\p{P}\$\+<=>\^~\|]+)", kGpt2Pattern, R"(\p{N}+)",
                   kThreeDigitsPattern})},
      {.names = {"bailingmoe", "bailingmoe2", "llada-moe"},
       .cuts = Of({Join({R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|)",
                         kNumberPattern, R"(| ?[^\s\p{L}\p{N}]++[\r\n]*|)",
                         R"(\s*[\r\n]|\s+(?!\S)|\s+)"})})},
      {.names = {"seed-coder"},
       .cuts = Of({ContractionsAndWords(
           Join({R"(\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|)", kSpaces}))})},
      {.names = {"minicpm5"},
       .cuts = Of({kThreeNumbers,
                   ContractionsAndWords(Join(
                       {R"(\p{N}+|)", kSymbols, R"([\r\n]*|)", kSpaces}))}),
       .ignore_merges = true},
      {.names = {"poro-chat", "bloom", "gpt3-finnish"}, .cuts = bloom},
      {.names = {"viking"}, .cuts = Of({bloom[0].pattern, kNumberPattern})},
  };
}

}  // namespace

const std::vector<GgufPre>& AllGgufPres() {
  static const auto* const all = new std::vector<GgufPre>(MakeAll());
  return *all;
}

const GgufPre* FindGgufPre(std::string_view name) {
  for (const GgufPre& pre : AllGgufPres()) {
    for (const std::string_view known : pre.names) {
      if (known == name) return &pre;
    }
  }
  return nullptr;
}

std::string NamesOfGgufPres() {
  std::vector<std::string_view> names;
  for (const GgufPre& pre : AllGgufPres()) {
    names.insert(names.end(), pre.names.begin(), pre.names.end());
  }
  return absl::StrJoin(
      names, ", ",
      [](std::string* out, std::string_view name) { out->append(name); });
}

std::string_view NameOfCuts(const std::vector<Cut>& cuts) {
  for (const GgufPre& pre : AllGgufPres()) {
    if (std::equal(
            pre.cuts.begin(), pre.cuts.end(), cuts.begin(), cuts.end(),
            [](const Cut& a, const Cut& b) { return a.pattern == b.pattern; }))
      return pre.names.front();
  }
  return "custom";
}

}  // namespace tiercel
