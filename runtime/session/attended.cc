#include "runtime/session/attended.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "runtime/session/session.h"

namespace tiercel {

absl::StatusOr<PositionRange> RunsOf(const Sequence& sequence,
                                     const Reading& reading) {
  if (reading.begin > reading.end || reading.end >= reading.asked ||
      reading.asked > reading.answer ||
      reading.answer >= sequence.tokens().size()) {
    return UsageError(
        "invalid_argument",
        absl::StrCat("begin, end, asked, answer: got ", reading.begin, ", ",
                     reading.end, ", ", reading.asked, ", ", reading.answer,
                     ", need begin <= end < asked <= answer, and answer below "
                     "the ",
                     sequence.tokens().size(), " tokens held"));
  }
  constexpr int64_t kRun = AttentionShares::kRun;
  const int64_t from =
      sequence.first_position() + static_cast<int64_t>(reading.begin);
  const int64_t to =
      sequence.first_position() + static_cast<int64_t>(reading.end);
  const int64_t first = (from + kRun - 1) / kRun;
  return PositionRange{first, std::max(first, to / kRun)};
}

absl::StatusOr<std::vector<double>> Session::Attended(const Reading& reading,
                                                      Progress progress) {
  ASSIGN_OR_RETURN(const PositionRange runs, RunsOf(sequence_, reading));
  if (runs.begin == runs.end) return std::vector<double>();
  if (!sequence_.IsComputed()) {
    return UsageError(
        "invalid_argument",
        "keys that were filled, not computed, say nothing of where an answer "
        "looked");
  }
  for (const auto& rank : kv_->ranks()) {
    RETURN_IF_ERROR(rank->ReserveShares());
    rank->shares->Begin(runs.begin, runs.end);
  }
  // The rows are computed again with the same bits (row invariance), so that
  // what was saved of them, and the logits after the last, stay true.
  const auto end = static_cast<int64_t>(reading.end);
  if (sequence_.kv_length() > end) {
    sequence_.TruncateKv(end);
    kv_->Truncate(end);
  }
  for (const auto& rank : kv_->ranks()) {
    rank->store->Observe(rank->shares.get());
  }
  const absl::Cleanup observe = [this] {
    for (const auto& rank : kv_->ranks()) {
      rank->store->Observe(rank->retrieval.get());
    }
  };
  const auto total = static_cast<uint64_t>(sequence_.pending());
  using Rows = AttentionShares::Rows;
  const std::pair<Rows, size_t> kParts[] = {
      {Rows::kOther, reading.end},
      {Rows::kBeforeTheQuestion, reading.asked},
      {Rows::kOther, reading.answer},
      {Rows::kOfTheAnswer, sequence_.tokens().size()}};
  for (const auto& [rows, part_end] : kParts) {
    for (const auto& rank : kv_->ranks()) rank->shares->Count(rows);
    while (sequence_.kv_length() < static_cast<int64_t>(part_end)) {
      if (!progress(total - static_cast<uint64_t>(sequence_.pending()),
                    total)) {
        return CancelledError();
      }
      const int64_t left =
          static_cast<int64_t>(part_end) - sequence_.kv_length();
      RETURN_IF_ERROR(
          Forward(std::min(left, kMaxStepRows), Phase::kVerify, kNoProgress));
    }
  }
  std::vector<const AttentionShares*> parts;
  for (const auto& rank : kv_->ranks()) {
    if (!rank->IsFirstOfHeads()) continue;
    parts.push_back(rank->shares.get());
  }
  return AttentionShares::SharesOf(parts);
}

}  // namespace tiercel
