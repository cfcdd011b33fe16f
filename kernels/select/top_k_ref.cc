#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "kernels/select/top_k.h"

namespace tiercel {

void TopKReference(const TopKParams& p) {
  const int64_t kept = std::min(p.k, p.n);
  const auto always = static_cast<std::ptrdiff_t>(std::min(p.always, p.n));
  for (int64_t row = 0; row < p.rows; ++row) {
    const float* const values = p.values + row * p.stride;
    std::vector<int32_t> order(static_cast<size_t>(p.n));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(
        order.begin() + always, order.end(),
        [&](int32_t a, int32_t b) { return values[a] > values[b]; });
    int32_t* const out = p.out + row * kept;
    std::copy_n(order.begin(), kept, out);
    std::sort(out, out + kept);
  }
}

}  // namespace tiercel
