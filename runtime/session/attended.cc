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

absl::Status Session::InPlaceOf(size_t from, const std::vector<int32_t>& tokens,
                                absl::FunctionRef<absl::Status()> read) {
  const Sequence own = sequence_;
  const auto length = static_cast<int64_t>(from);
  const absl::Cleanup restore = [&] {
    sequence_ = own;
    sequence_.TruncateKv(length);
    kv_->Truncate(length);
  };
  sequence_.Truncate(from);
  RETURN_IF_ERROR(CheckFit(tokens.data(), tokens.size()));
  sequence_.Append(tokens.data(), tokens.size());
  return read();
}

absl::StatusOr<AttentionShares::Found> Session::Attended(const Reading& reading,
                                                         Progress progress) {
  ASSIGN_OR_RETURN(const PositionRange runs, RunsOf(sequence_, reading));
  if (runs.begin == runs.end) return AttentionShares::Found();
  if (!sequence_.IsComputed()) {
    return UsageError(
        "invalid_argument",
        "keys that were filled, not computed, say nothing of where a question "
        "looks");
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
  auto total = static_cast<uint64_t>(sequence_.pending());
  for (const auto& other : reading.others) total += other.size();
  uint64_t done = 0;
  using Rows = AttentionShares::Rows;
  const auto read = [&](Rows rows, size_t until) -> absl::Status {
    for (const auto& rank : kv_->ranks()) rank->shares->Count(rows);
    while (sequence_.kv_length() < static_cast<int64_t>(until)) {
      if (!progress(done, total)) return CancelledError();
      const int64_t step = std::min(
          static_cast<int64_t>(until) - sequence_.kv_length(), kMaxStepRows);
      RETURN_IF_ERROR(Forward(step, Phase::kVerify, kNoProgress));
      done += static_cast<uint64_t>(step);
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(read(Rows::kNone, reading.end));
  RETURN_IF_ERROR(read(Rows::kBeforeTheQuestion, reading.asked));
  for (const std::vector<int32_t>& other : reading.others) {
    RETURN_IF_ERROR(InPlaceOf(reading.asked, other, [&] {
      return read(Rows::kOfAnother, reading.asked + other.size());
    }));
  }
  RETURN_IF_ERROR(read(Rows::kOfTheQuestion, reading.answer));
  RETURN_IF_ERROR(read(Rows::kNone, sequence_.tokens().size()));
  std::vector<const AttentionShares*> parts;
  for (const auto& rank : kv_->ranks()) {
    if (!rank->IsFirstOfHeads()) continue;
    parts.push_back(rank->shares.get());
  }
  return AttentionShares::SharesOf(parts);
}

}  // namespace tiercel
