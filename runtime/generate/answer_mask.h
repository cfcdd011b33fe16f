#ifndef TIERCEL_RUNTIME_GENERATE_ANSWER_MASK_H_
#define TIERCEL_RUNTIME_GENERATE_ANSWER_MASK_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/token/token_mask.h"
#include "models/chat/thought_tags.h"
#include "models/tokenizer/tokenizer.h"

namespace tiercel {

// The rule of a mask that is meant for the answer of an output whose thought is
// told from it. The mask is asked about the tokens behind the closing tag
// alone. Within a thought all tokens are allowed, but for one that would close
// it and begin an answer that the mask has not seen. An output that may yet
// begin with a thought may have the control token that opens one, too.
class AnswerMask {
 public:
  // `tokenizer` outlives this. `thinks`: the output begins within a thought.
  // Errors: those of Tokenizer::Piece.
  static absl::StatusOr<AnswerMask> Create(TokenMask::Rule mask,
                                           const Tokenizer* tokenizer,
                                           ThoughtTags tags, bool thinks);

  // See TokenMask::Rule. Errors: those of the mask, and invalid_token.
  absl::Status Ask(std::span<const int32_t> output,
                   std::span<uint32_t> allowed);

 private:
  AnswerMask(TokenMask::Rule mask, const Tokenizer* tokenizer, ThoughtTags tags,
             bool thinks)
      : mask_(std::move(mask)),
        tokenizer_(tokenizer),
        tags_(std::move(tags)),
        thinks_(thinks) {}

  absl::StatusOr<std::string> Piece(int32_t id) const;
  // Makes text_ that of `output`: only the tokens that differ from those asked
  // about last are decoded.
  absl::Status GoTo(std::span<const int32_t> output);
  void ForbidBothParts(std::span<uint32_t> allowed) const;

  TokenMask::Rule mask_;
  const Tokenizer* tokenizer_;
  ThoughtTags tags_;
  bool thinks_;
  // The tokens that have the end of a closing tag and a part of an answer.
  std::vector<std::pair<int32_t, std::string>> both_parts_;
  std::vector<int32_t> tokens_;  // asked about last
  std::string text_;             // their text, with tags
  std::vector<size_t> ends_;     // bytes of text_ up to each token's end
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_GENERATE_ANSWER_MASK_H_
