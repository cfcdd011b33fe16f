#ifndef TIERCEL_RUNTIME_MODEL_DRAFT_MODEL_H_
#define TIERCEL_RUNTIME_MODEL_DRAFT_MODEL_H_

#include "absl/status/status.h"
#include "runtime/model/model.h"

namespace tiercel {

// Checks that `draft` may propose tokens to `target`: both must have the same
// vocabulary, id by id. If one of them has no tokenizer, the sizes alone are
// compared. Neither needs its weights. Errors: draft_vocabulary, with both
// sizes or with the first token that differs.
absl::Status CheckDraftModel(const Model& target, const Model& draft);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_MODEL_DRAFT_MODEL_H_
