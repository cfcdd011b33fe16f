// The choice of chunks against sorting them all.

#include "offload/view/chunk_choice.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace tiercel {
namespace {

std::vector<int32_t> Sorted(const std::vector<float>& scores, size_t sinks,
                            size_t count) {
  std::vector<int32_t> chunks(scores.size());
  std::iota(chunks.begin(), chunks.end(), 0);
  const size_t first = std::min(sinks, chunks.size());
  std::stable_sort(chunks.begin() + static_cast<std::ptrdiff_t>(first),
                   chunks.end(), [&](int32_t a, int32_t b) {
                     return scores[static_cast<size_t>(a)] >
                            scores[static_cast<size_t>(b)];
                   });
  chunks.resize(std::min(count, chunks.size()));
  std::sort(chunks.begin(), chunks.end());
  return chunks;
}

TEST(ChunkChoiceTest, IsWhatSortingThemGives) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    std::vector<float> scores(random() % 70);
    // From all alike to hardly any.
    const unsigned values = 1u << random() % 8;
    for (float& score : scores) {
      score = static_cast<float>(random() % values) / 3.0f;
    }
    const size_t sinks = random() % 5;
    const size_t count = random() % 80;
    EXPECT_EQ(ChooseChunks(scores, sinks, count), Sorted(scores, sinks, count))
        << seed << ": " << count << " of " << scores.size() << ", sinks "
        << sinks;
  }
}

TEST(ChunkChoiceTest, SinksComeFirstAndThenTheEarlierOfEquals) {
  const std::vector<float> scores = {0, 0, 5, 1, 5, 5, 1};
  using Chunks = std::vector<int32_t>;
  EXPECT_EQ(ChooseChunks(scores, 2, 4), (Chunks{0, 1, 2, 4}));
  EXPECT_EQ(ChooseChunks(scores, 0, 4), (Chunks{2, 3, 4, 5}));
  EXPECT_EQ(ChooseChunks(scores, 3, 2), (Chunks{0, 1}));
  EXPECT_EQ(ChooseChunks(scores, 1, 0), Chunks{});
  EXPECT_EQ(ChooseChunks(scores, 1, 7), (Chunks{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(ChooseChunks(scores, 9, 100), (Chunks{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(ChooseChunks({}, 1, 3), Chunks{});
}

}  // namespace
}  // namespace tiercel
