#include "runtime/sweep_target.h"

#include <algorithm>

namespace tiercel {
namespace {

// The repeat penalty looks this far back, as is usual in the field.
constexpr size_t kRepeatWindow = 64;

}  // namespace

absl::StatusOr<std::vector<Law>> SweepTarget::Laws(
    const std::vector<int32_t>& block) {
  // After a prompt the first law is known; otherwise the last token's row is
  // the first of the sweep.
  if (session_.pending() != 1) {
    if (absl::Status s = session_.CatchUp(Station::kVerify); !s.ok()) return s;
  }
  std::vector<Law> laws;
  before_ = session_.tokens().size();
  swept_ = false;
  if (session_.pending() == 0) {
    absl::StatusOr<Law> law = LawAfter(before_, session_.NextLogits().data());
    if (!law.ok()) return law.status();
    laws.push_back(*std::move(law));
  }
  if (absl::Status s = session_.Append(block.data(), block.size()); !s.ok()) {
    return s;
  }
  const int64_t rows = session_.pending();
  if (rows == 0) return laws;
  if (absl::Status s = session_.Sweep(Station::kVerify); !s.ok()) return s;
  swept_ = true;
  const auto vocab = static_cast<size_t>(session_.model().config.vocab);
  logits_.resize(static_cast<size_t>(rows) * vocab);
  if (absl::Status s = session_.RowLogits(0, rows, logits_.data()); !s.ok()) {
    return s;
  }
  const size_t first = session_.tokens().size() - static_cast<size_t>(rows);
  for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
    absl::StatusOr<Law> law =
        LawAfter(first + row + 1, logits_.data() + row * vocab);
    if (!law.ok()) return law.status();
    laws.push_back(*std::move(law));
  }
  return laws;
}

absl::StatusOr<Law> SweepTarget::LawAfter(size_t length, const float* logits) {
  const size_t recent = std::min(length, kRepeatWindow);
  return MakeLaw(session_.stream(),
                 {.logits = logits,
                  .vocab = session_.model().config.vocab,
                  .recent = session_.tokens().data() + length - recent,
                  .num_recent = static_cast<int64_t>(recent),
                  .law = law_});
}

absl::Status SweepTarget::Keep(size_t count) {
  return swept_ ? session_.Keep(before_ + count) : absl::OkStatus();
}

}  // namespace tiercel
