#include "drafts/draft_length.h"

#include "drafts/drafter.h"

namespace tiercel {
namespace {

// The weight of all earlier blocks falls by this factor with each block, since
// the text changes.
constexpr double kMemory = 0.9;

}  // namespace

int64_t DraftLength::Next() const {
  if (fixed_ > 0) return fixed_;
  const double acceptance = held_ / checked_;
  double power = acceptance;  // chance that all `length` tokens hold
  double tokens = 1 + power;
  int64_t best = 1;
  double best_rate = tokens / (1 + cost_ratio_);
  for (int64_t length = 2; length <= kMost; ++length) {
    power *= acceptance;
    tokens += power;
    const double rate = tokens / (static_cast<double>(length) + cost_ratio_);
    if (rate > best_rate) {
      best = length;
      best_rate = rate;
    }
  }
  return best;
}

void DraftLength::Count(int64_t drafted, int64_t accepted) {
  if (drafted == 0) return;
  checked_ =
      kMemory * checked_ + static_cast<double>(CheckedOf(drafted, accepted));
  held_ = kMemory * held_ + static_cast<double>(accepted);
}

}  // namespace tiercel
