#ifndef TIERCEL_MODELS_TOKENIZER_HF_SETTINGS_H_
#define TIERCEL_MODELS_TOKENIZER_HF_SETTINGS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"

namespace tiercel {

// The settings of a Hugging Face folder's tokenizer that stand in files beside
// its vocabulary, merged as transformers merges them
// (tokenization_utils_base.py of version 5): tokenizer_config.json, and
// special_tokens_map.json, whose fields replace those of the former unless it
// has "added_tokens_decoder".
class HfSettings {
 public:
  // `side_files` as Checkpoint has them; they must outlive this.
  explicit HfSettings(const nlohmann::json& side_files);

  // Returns a merged field; JSON null if it is absent.
  const nlohmann::json& Get(const char* key) const;
  bool Has(const char* key) const {
    return merged_.is_object() && merged_.contains(key);
  }

  // A token for one use ("bos_token", "eos_token").
  struct Named {
    bool is_said = false;       // by a file or by the tokenizer's class
    nlohmann::json token = {};  // a text or {"content": text}; null: none
  };
  // A null that is written down says that there is no such token. A field that
  // is absent has the default of the tokenizer's class.
  Named TokenFor(const char* use) const;

  // Returns the added tokens in the form of tokenizer.json's "added_tokens", of
  // "added_tokens_decoder" or else of added_tokens.json, in the order of their
  // ids.
  nlohmann::json AddedTokens() const;

  // Returns the texts of tokens for uses other than BOS and EOS, by the use.
  std::vector<std::pair<std::string, std::string>> NamedTexts() const;

  // Returns the texts of tokens with any use, which makes them special.
  std::vector<std::string> SpecialTexts() const;

  // Returns a tokenizer.json of vocab.json and merges.txt, as transformers
  // makes it for the tokenizer's class: Qwen 2's, else GPT-2's. Null if there
  // are not both.
  nlohmann::json FromVocabAndMerges() const;

 private:
  // The kind of tokenizer, without "Fast" at its end: LlamaTokenizer.
  std::string ClassName() const;

  const nlohmann::json& side_files_;
  nlohmann::json merged_;  // null: there is neither file
};

}  // namespace tiercel

#endif  // TIERCEL_MODELS_TOKENIZER_HF_SETTINGS_H_
