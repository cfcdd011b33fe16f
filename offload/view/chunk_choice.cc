#include "offload/view/chunk_choice.h"

#include <algorithm>
#include <numeric>

namespace tiercel {

std::vector<int32_t> ChooseChunks(std::span<const float> scores, size_t sinks,
                                  size_t count) {
  std::vector<int32_t> chunks(scores.size());
  std::iota(chunks.begin(), chunks.end(), 0);
  if (count >= chunks.size()) return chunks;
  sinks = std::min(sinks, count);
  const auto first = chunks.begin() + static_cast<std::ptrdiff_t>(sinks);
  const auto last = chunks.begin() + static_cast<std::ptrdiff_t>(count);
  std::nth_element(first, last, chunks.end(), [&](int32_t a, int32_t b) {
    const float of_a = scores[static_cast<size_t>(a)];
    const float of_b = scores[static_cast<size_t>(b)];
    return of_a > of_b || (!(of_b > of_a) && a < b);
  });
  chunks.erase(last, chunks.end());
  std::sort(chunks.begin(), chunks.end());
  return chunks;
}

}  // namespace tiercel
