#ifndef TIERCEL_RUNTIME_GENERATE_DRY_BREAKERS_H_
#define TIERCEL_RUNTIME_GENERATE_DRY_BREAKERS_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/token/dry.h"
#include "models/tokenizer/tokenizer.h"

namespace tiercel {

// The default texts that end a repetition: llama.cpp's four.
inline constexpr std::string_view kUsualBreakers[] = {"\n", ":", "\"", "*"};

// The runs of tokens that end a repetition: every token that holds one of
// `texts`, and every token that ends in the beginning of one together with the
// tokens that spell the rest. No text is empty.
SequenceBreakers BreakersOf(const Tokenizer& tokenizer,
                            const std::vector<std::string>& texts);

// Keeps the result of BreakersOf, which looks at the whole vocabulary, for
// generations with the same texts.
class KnownBreakers {
 public:
  // Null if there are no texts, or no tokenizer to spell them.
  std::shared_ptr<const SequenceBreakers> Of(
      const Tokenizer* tokenizer, const std::vector<std::string>& texts);

 private:
  std::vector<std::string> texts_;
  std::shared_ptr<const SequenceBreakers> breakers_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_GENERATE_DRY_BREAKERS_H_
