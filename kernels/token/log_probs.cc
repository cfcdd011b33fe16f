#include "kernels/token/log_probs.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace tiercel {

TokenLogProbs LogProbsOf(std::span<const float> logits, int32_t id,
                         int64_t most) {
  const double greatest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp(static_cast<double>(logit) - greatest);
  }
  const double total = greatest + std::log(sum);
  const auto of = [&](int32_t token) {
    return static_cast<float>(
        static_cast<double>(logits[static_cast<size_t>(token)]) - total);
  };
  TokenLogProbs made = {.log_prob = of(id)};
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto end = ids.begin() + std::min<int64_t>(std::ssize(ids), most);
  std::partial_sort(ids.begin(), end, ids.end(), [&](int32_t a, int32_t b) {
    const float of_a = logits[static_cast<size_t>(a)];
    const float of_b = logits[static_cast<size_t>(b)];
    return of_a > of_b || (of_a == of_b && a < b);
  });
  made.top_ids.assign(ids.begin(), end);
  for (const int32_t token : made.top_ids) {
    made.top_log_probs.push_back(of(token));
  }
  return made;
}

}  // namespace tiercel
