#include "models/tokenizer/hf_settings.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "models/tokenizer/hf_json.h"
#include "models/tokenizer/known_patterns.h"

namespace tiercel {
namespace {

using Json = nlohmann::json;

// The tokens that transformers' classes have by themselves.
struct ClassTokens {
  std::string_view name;
  const char* bos;  // null: none
  const char* eos;
};
constexpr ClassTokens kClasses[] = {
    {"LlamaTokenizer", "<s>", "</s>"},
    {"CodeLlamaTokenizer", "<s>", "</s>"},
    {"GPT2Tokenizer", "<|endoftext|>", "<|endoftext|>"},
    {"Qwen2Tokenizer", nullptr, "<|endoftext|>"},
    {"GemmaTokenizer", "<bos>", "<eos>"},
};

constexpr const char* kUses[] = {"bos_token", "eos_token", "unk_token",
                                 "sep_token", "pad_token", "cls_token",
                                 "mask_token"};

// Appends the text of a token, which may be written as {"content": text}.
void AddText(const Json& token, std::vector<std::string>* texts) {
  const Json& text = token.is_object() ? Member(token, "content") : token;
  if (text.is_string() && text != "") texts->push_back(text);
}

}  // namespace

HfSettings::HfSettings(const Json& side_files) : side_files_(side_files) {
  const Json& map = Member(side_files, "special_tokens_map.json");
  merged_ = Member(side_files, "tokenizer_config.json");
  if (!map.is_object() || merged_.contains("added_tokens_decoder")) return;
  if (!merged_.is_object()) merged_ = Json::object();
  for (const auto& [key, value] : map.items()) merged_[key] = value;
}

const Json& HfSettings::Get(const char* key) const {
  return Member(merged_, key);
}

std::string HfSettings::ClassName() const {
  const Json& name = Get("tokenizer_class");
  if (name.is_string()) {
    return std::string(absl::StripSuffix(name.get<std::string>(), "Fast"));
  }
  const Json& type = Member(Member(side_files_, "config.json"), "model_type");
  if (type == "llama" || type == "mistral") return "LlamaTokenizer";
  if (type == "qwen2" || type == "qwen3" || type == "qwen3_moe") {
    return "Qwen2Tokenizer";
  }
  return "";
}

HfSettings::Named HfSettings::TokenFor(const char* use) const {
  if (Has(use)) return {.is_said = true, .token = merged_[use]};
  const std::string name = ClassName();
  for (const ClassTokens& kind : kClasses) {
    if (kind.name != name) continue;
    const char* const token =
        std::string_view(use) == "bos_token" ? kind.bos : kind.eos;
    if (token != nullptr) return {.is_said = true, .token = token};
  }
  return {.is_said = merged_.is_object()};
}

Json HfSettings::AddedTokens() const {
  Json added = Json::array();
  const Json& decoder = Get("added_tokens_decoder");
  for (const auto& [id, token] : decoder.items()) {
    int64_t number = -1;
    if (!token.is_object() || !absl::SimpleAtoi(id, &number)) continue;
    added.push_back(token);
    added.back()["id"] = number;
  }
  const Json& ids = Member(side_files_, "added_tokens.json");
  if (!decoder.is_object() && ids.is_object()) {
    for (const auto& [text, id] : ids.items()) {
      added.push_back({{"content", text}, {"id", id}});
    }
  }
  std::sort(added.begin(), added.end(),
            [](const Json& a, const Json& b) { return a["id"] < b["id"]; });
  return added;
}

std::vector<std::pair<std::string, std::string>> HfSettings::NamedTexts()
    const {
  std::vector<std::pair<std::string, std::string>> named;
  for (const std::string_view use : kUses) {
    if (use == "bos_token" || use == "eos_token") continue;
    std::vector<std::string> texts;
    AddText(Get(use.data()), &texts);
    for (std::string& text : texts) named.emplace_back(use, std::move(text));
  }
  return named;
}

std::vector<std::string> HfSettings::SpecialTexts() const {
  std::vector<std::string> texts;
  for (const char* use : kUses) AddText(Get(use), &texts);
  for (const char* key :
       {"additional_special_tokens", "extra_special_tokens"}) {
    const Json& list = Get(key);
    if (list.is_structured()) {
      for (const Json& token : list) AddText(token, &texts);
    }
  }
  return texts;
}

Json HfSettings::FromVocabAndMerges() const {
  const Json& vocab = Member(side_files_, "vocab.json");
  const Json& text = Member(side_files_, "merges.txt");
  if (!vocab.is_object() || !text.is_string()) return nullptr;
  Json merges = Json::array();
  for (absl::string_view line :
       absl::StrSplit(text.get_ref<const std::string&>(), '\n')) {
    absl::ConsumeSuffix(&line, "\r");
    if (line.empty() ||
        (merges.empty() && absl::StartsWith(line, "#version"))) {
      continue;
    }
    merges.push_back(std::string(line));
  }
  const bool qwen = ClassName() == "Qwen2Tokenizer";
  Json byte_level = {{"type", "ByteLevel"},
                     {"add_prefix_space", Get("add_prefix_space") == true},
                     {"use_regex", !qwen}};
  Json stages = byte_level;
  if (qwen) {
    stages = {{"type", "Sequence"},
              {"pretokenizers",
               {{{"type", "Split"},
                 {"pattern", {{"Regex", std::string(kQwen2Pattern)}}},
                 {"behavior", "Isolated"},
                 {"invert", false}},
                byte_level}}};
  }
  return {{"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}}},
          {"normalizer", qwen ? Json{{"type", "NFC"}} : Json()},
          {"pre_tokenizer", stages},
          {"decoder", {{"type", "ByteLevel"}}}};
}

}  // namespace tiercel
