#include "runtime/drafting/session_kv.h"

#include <iterator>

#include "lib/status/status_macros.h"

namespace tiercel {

absl::Status SessionKv::Begin(const std::vector<int32_t>& tokens) {
  session_.Truncate(tokens.size());
  return absl::OkStatus();
}

absl::StatusOr<const float*> SessionKv::Pass(
    const std::vector<int32_t>& block, absl::Span<const DraftBranch> branches) {
  const Sequence& sequence = session_.sequence();
  // After a prompt the first row's logits are known; otherwise the last token's
  // row is in the sweep, behind those of a branch that held.
  const bool in_sweep =
      0 < sequence.pending() && sequence.pending() <= pending_;
  if (!in_sweep) {
    RETURN_IF_ERROR(session_.CatchUp(Phase::kVerify));
  }
  branches_ = {};
  swept_ = false;
  const float* const next = session_.NextLogits().data();
  const bool next_known = sequence.pending() == 0;
  RETURN_IF_ERROR(session_.Append(block.data(), block.size()));
  const int64_t rows = sequence.pending();
  if (rows == 0) return next;
  // Other tokens that may follow what the KV holds: a branch each.
  const auto known = static_cast<std::ptrdiff_t>(sequence.kv_length());
  const std::vector<int32_t>& tokens = sequence.tokens();
  std::vector<std::vector<int32_t>> others;
  for (const DraftBranch& branch : branches) {
    const auto shared = std::ssize(tokens) - std::ssize(block) +
                        static_cast<std::ptrdiff_t>(branch.at);
    auto& other =
        others.emplace_back(tokens.begin() + known, tokens.begin() + shared);
    branches_.push_back(
        {.skipped = std::ssize(other), .count = std::ssize(branch.tokens)});
    other.insert(other.end(), branch.tokens.begin(), branch.tokens.end());
  }
  std::vector<int64_t> first_rows;
  RETURN_IF_ERROR(session_.Sweep(Phase::kVerify, others, &first_rows));
  for (size_t i = 0; i < branches_.size(); ++i) {
    branches_[i].first = first_rows[i];
  }
  swept_ = true;
  const int64_t wanted = std::ssize(block) + (next_known ? 0 : 1);
  ASSIGN_OR_RETURN(const float* swept,
                   session_.runner().RowLogits(rows - wanted, wanted));
  // If the first row was known, the sweep's rows lie behind it.
  return next_known ? next : swept;
}

absl::StatusOr<const float*> SessionKv::BranchLogits(size_t branch) {
  if (branch >= branches_.size() || branches_[branch].first < 0) return nullptr;
  const auto& [first, skipped, count] = branches_[branch];
  return session_.runner().RowLogits(first + skipped, count);
}

absl::Status SessionKv::Keep(size_t length, absl::Span<const int32_t> next) {
  if (swept_) {
    RETURN_IF_ERROR(session_.Keep(length));
  }
  pending_ = std::ssize(next);
  return session_.Append(next.data(), next.size());
}

}  // namespace tiercel
