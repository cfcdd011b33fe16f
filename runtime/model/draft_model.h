#ifndef TIERCEL_RUNTIME_MODEL_DRAFT_MODEL_H_
#define TIERCEL_RUNTIME_MODEL_DRAFT_MODEL_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/model/model.h"

namespace tiercel {

// The tokens of a draft model that its target has, too: those with the same id,
// text and kind. Others are never drafted; a draft that must read one that is
// the target's alone reads a token that they share instead.
class SharedTokens {
 public:
  // All of `vocab` tokens are shared but those of `never`, in ascending order.
  SharedTokens(int64_t vocab, std::vector<int32_t> never);

  const std::vector<int32_t>& never() const { return never_; }
  // The token that a draft reads for one of the target's.
  int32_t ReadFor(int32_t id) const;

 private:
  int64_t vocab_;  // the draft model's
  std::vector<int32_t> never_;
  int32_t instead_ = 0;  // a shared one
};

// Returns the tokens that `draft` may propose to `target`. Both must have the
// same vocabulary, id by id: padding that no text uses does not count, nor do
// other tokens that are few. If one of them has no tokenizer, the sizes alone
// are compared. Neither needs its weights. Errors: draft_vocabulary, with both
// sizes or with the first token that differs.
absl::StatusOr<SharedTokens> CheckDraftModel(const Model& target,
                                             const Model& draft);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_MODEL_DRAFT_MODEL_H_
