#ifndef TIERCEL_RUNTIME_GENERATE_BREAKERS_H_
#define TIERCEL_RUNTIME_GENERATE_BREAKERS_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/token/dry.h"
#include "models/tokenizer/tokenizer.h"

namespace tiercel {

// What ends a repetition where nothing else is said: llama.cpp's four.
inline constexpr std::string_view kUsualBreakers[] = {"\n", ":", "\"", "*"};

// Texts that end a repetition, as runs of tokens: every token that holds such a
// text, and of every token that ends in the beginning of one, that token and
// those that spell the rest. No text is empty.
SequenceBreakers BreakersOf(const Tokenizer& tokenizer,
                            const std::vector<std::string>& texts);

// BreakersOf, which looks at the whole vocabulary, for one generation after the
// other with the same texts.
class KnownBreakers {
 public:
  // Null where there are no texts, or no tokenizer to spell them.
  std::shared_ptr<const SequenceBreakers> Of(
      const Tokenizer* tokenizer, const std::vector<std::string>& texts);

 private:
  std::vector<std::string> texts_;
  std::shared_ptr<const SequenceBreakers> breakers_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_GENERATE_BREAKERS_H_
