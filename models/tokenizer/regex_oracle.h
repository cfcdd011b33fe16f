#ifndef TIERCEL_MODELS_TOKENIZER_REGEX_ORACLE_H_
#define TIERCEL_MODELS_TOKENIZER_REGEX_ORACLE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tiercel {

// Oniguruma, the engine of Hugging Face tokenizers. For tests only, and apart
// from them: its header and GoogleTest's system headers define the same names.
class RegexOracle {
 public:
  // Not valid if `pattern` does not compile.
  explicit RegexOracle(std::string_view pattern);
  ~RegexOracle();

  bool valid() const { return impl_ != nullptr; }

  // Appends the matches in `text` and the stretches between them, in order.
  void Split(const std::string& text, std::vector<std::string>* pieces) const;

  // Returns true if all of `text` is one match.
  bool Matches(const std::string& text) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tiercel

#endif  // TIERCEL_MODELS_TOKENIZER_REGEX_ORACLE_H_
