#include "runtime/drafting/session_kv.h"

#include "lib/status/status_macros.h"

namespace tiercel {

absl::Status SessionKv::Begin(const std::vector<int32_t>& tokens) {
  session_.Truncate(tokens.size());
  return absl::OkStatus();
}

absl::StatusOr<const float*> SessionKv::Pass(
    const std::vector<int32_t>& block) {
  const Sequence& sequence = session_.sequence();
  // After a prompt the first row's logits are known; otherwise the last token's
  // row is the first of the sweep.
  if (sequence.pending() != 1) {
    RETURN_IF_ERROR(session_.CatchUp(Phase::kVerify));
  }
  swept_ = false;
  const float* const next = session_.NextLogits().data();
  const bool next_known = sequence.pending() == 0;
  RETURN_IF_ERROR(session_.Append(block.data(), block.size()));
  const int64_t rows = sequence.pending();
  if (rows == 0) return next;
  RETURN_IF_ERROR(session_.Sweep(Phase::kVerify));
  swept_ = true;
  ASSIGN_OR_RETURN(const float* swept, session_.runner().RowLogits(0, rows));
  // If the first row was known, the sweep's rows lie behind it.
  return next_known ? next : swept;
}

absl::Status SessionKv::Keep(size_t length, int32_t next) {
  if (swept_) {
    RETURN_IF_ERROR(session_.Keep(length));
  }
  return session_.Append(&next, 1);
}

}  // namespace tiercel
