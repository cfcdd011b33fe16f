#include "apps/commands/likelihood.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace tiercel::cli {
namespace {

TEST(LikelihoodTest, OfOneToken) {
  const float logits[] = {1000.0f, 1000.0f + std::log(3.0f), -1e30f};
  EXPECT_NEAR(NegativeLogLikelihood(logits, 3, 0), std::log(4.0), 1e-4);
  EXPECT_NEAR(NegativeLogLikelihood(logits, 3, 1), std::log(4.0 / 3), 1e-4);
}

// p = (3/4, 1/4) and q = (1/4, 3/4), and twice the same.
TEST(LikelihoodTest, DivergenceIsFromTheFullRow) {
  const float p[] = {std::log(3.0f), 0};
  const float q[] = {5, 5 + std::log(3.0f)};
  const float even[] = {2, 2};
  Divergence divergence(2);
  divergence.Add(p, q);
  divergence.Add(p, p);
  divergence.Add(p, even);  // likeliest: the first of equals
  const double from_q = 0.5 * std::log(3.0);
  const double from_even = 0.75 * std::log(1.5) + 0.25 * std::log(0.5);
  EXPECT_NEAR(divergence.MeanKl(), (from_q + from_even) / 3, 1e-7);
  EXPECT_NEAR(divergence.P99Kl(), from_q, 1e-7);
  EXPECT_NEAR(divergence.Top1(), 2.0 / 3, 1e-12);

  // Only the last of 100 rows exceeds p99.
  Divergence many(2);
  for (int i = 0; i < 99; ++i) many.Add(p, even);
  many.Add(p, q);
  EXPECT_NEAR(many.P99Kl(), from_even, 1e-7);
}

TEST(LikelihoodTest, RowsComeBackInTheirOrder) {
  absl::StatusOr<LogitsFile> file = LogitsFile::Create(2);
  ASSERT_TRUE(file.ok());
  const float rows[][2] = {{1, 2}, {3, 4}};
  for (const auto& row : rows) ASSERT_TRUE(file->Add(row).ok());
  for (const auto& row : rows) {
    const absl::StatusOr<const float*> read = file->Next();
    ASSERT_TRUE(read.ok());
    EXPECT_EQ((*read)[0], row[0]);
    EXPECT_EQ((*read)[1], row[1]);
  }
  EXPECT_FALSE(file->Next().ok());
}

}  // namespace
}  // namespace tiercel::cli
