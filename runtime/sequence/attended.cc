// Session::Attended: where in a text the tokens of an answer look.

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/error.h"
#include "runtime/sequence/session.h"

namespace tiercel {

absl::StatusOr<PositionRange> Session::RunsOf(const Reading& reading) const {
  if (reading.begin > reading.end || reading.end >= reading.asked ||
      reading.asked > reading.answer || reading.answer >= tokens_.size()) {
    return UsageError(
        "invalid_argument",
        absl::StrCat("begin, end, asked, answer: got ", reading.begin, ", ",
                     reading.end, ", ", reading.asked, ", ", reading.answer,
                     ", need begin <= end < asked <= answer, and answer below "
                     "the ",
                     tokens_.size(), " tokens held"));
  }
  constexpr int64_t kRun = AttentionShares::kRun;
  const int64_t from = kv_->begin() + static_cast<int64_t>(reading.begin);
  const int64_t to = kv_->begin() + static_cast<int64_t>(reading.end);
  const int64_t first = (from + kRun - 1) / kRun;
  return PositionRange{first, std::max(first, to / kRun)};
}

absl::StatusOr<std::vector<double>> Session::Attended(const Reading& reading,
                                                      Progress progress) {
  const absl::StatusOr<PositionRange> runs = RunsOf(reading);
  if (!runs.ok()) return runs.status();
  if (runs->begin == runs->end) return std::vector<double>();
  if (filled_from_ < kv_->length()) {
    return UsageError(
        "invalid_argument",
        "keys that nobody computed say nothing of where an answer "
        "looked");
  }
  if (absl::Status s = ReserveShares(kv_->begin()); !s.ok()) return s;
  shares_->Begin(runs->begin, runs->end);
  // The rows come back with the bits they had (row invariance).
  const bool known = knows_next_;
  knows_next_ = false;
  const int64_t saved = saved_;
  const auto end = static_cast<int64_t>(reading.end);
  if (kv_->length() > end) TruncateKv(end);
  kv_->Observe(shares_.get());
  const absl::Cleanup observe = [this] { kv_->Observe(retrieval_.get()); };
  const auto total = static_cast<uint64_t>(pending());
  using Rows = AttentionShares::Rows;
  const std::pair<Rows, size_t> kParts[] = {
      {Rows::kOther, reading.end},
      {Rows::kBeforeTheQuestion, reading.asked},
      {Rows::kOther, reading.answer},
      {Rows::kOfTheAnswer, tokens_.size()}};
  for (const auto& [rows, part_end] : kParts) {
    shares_->Count(rows);
    while (kv_->length() < static_cast<int64_t>(part_end)) {
      if (!progress(total - static_cast<uint64_t>(pending()), total)) {
        return CancelledError();
      }
      const int64_t left = static_cast<int64_t>(part_end) - kv_->length();
      if (absl::Status s = Forward(std::min(left, kMaxStepRows),
                                   Station::kVerify, kNoProgress);
          !s.ok()) {
        return s;
      }
    }
  }
  knows_next_ = known;
  saved_ = saved;  // the file has the same rows
  return shares_->Shares();
}

absl::Status Session::ReserveShares(int64_t first_position) {
  if (shares_ != nullptr) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<AttentionShares>> shares =
      AttentionShares::Create(model_.machine->memory(),
                              SharesShape(model_.config, plan_.shape.layout,
                                          plan_.context, first_position));
  if (!shares.ok()) return shares.status();
  shares_ = *std::move(shares);
  return absl::OkStatus();
}

}  // namespace tiercel
