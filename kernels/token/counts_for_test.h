#ifndef TIERCEL_KERNELS_TOKEN_COUNTS_FOR_TEST_H_
#define TIERCEL_KERNELS_TOKEN_COUNTS_FOR_TEST_H_

// Compares counts of outcomes with their expected distribution.

#include <cmath>
#include <cstdint>
#include <map>

#include "gtest/gtest.h"

namespace tiercel {

// The number of standard deviations by which a chi-square statistic exceeds its
// mean (Wilson and Hilferty 1931).
inline double ChiSquareDeviations(double statistic, double freedom) {
  const double ninth = 2 / (9 * freedom);
  return (std::cbrt(statistic / freedom) - (1 - ninth)) / std::sqrt(ninth);
}
// The normal quantile of 1 - 1e-6.
inline constexpr double kOneInAMillion = 4.75;

// A bound that the total variation between a distribution over `outcomes` and
// the shares of `samples` draws from it exceeds at most once in a million. Its
// mean is at most 1/2 sum sqrt(p (1 - p) / samples) <= 1/2 sqrt(outcomes /
// samples) (Jensen, Cauchy and Schwarz). A draw changes it by 1 / samples at
// most, so it exceeds its mean by t with at most the probability
// exp(-2 samples t^2) (McDiarmid).
inline double VariationBound(double outcomes, double samples) {
  return 0.5 * std::sqrt(outcomes / samples) +
         std::sqrt(std::log(1e6) / (2 * samples));
}

// The number of samples for which that bound is `variation`.
inline int64_t SamplesFor(double outcomes, double variation) {
  const double root =
      (0.5 * std::sqrt(outcomes) + std::sqrt(std::log(1e6) / 2)) / variation;
  return static_cast<int64_t>(root * root) + 1;
}

// Fails if an outcome is not in the distribution, or if the chi-square
// statistic or the total variation exceeds a bound that chance exceeds once in
// a million. Returns the total variation.
template <typename Outcome>
double ExpectCounts(const std::map<Outcome, double>& distribution,
                    const std::map<Outcome, int64_t>& counts) {
  double samples = 0;
  for (const auto& [outcome, count] : counts) {
    EXPECT_TRUE(distribution.count(outcome)) << testing::PrintToString(outcome);
    samples += static_cast<double>(count);
  }
  double variation = 0;
  double statistic = 0;
  double freedom = -1;
  const auto add = [&](double found, double expected) {
    statistic += (found - expected) * (found - expected) / expected;
    freedom += 1;
  };
  double rare_found = 0;  // outcomes too rare for the approximation, pooled
  double rare_expected = 0;
  for (const auto& [outcome, p] : distribution) {
    const auto at = counts.find(outcome);
    const double found =
        at == counts.end() ? 0 : static_cast<double>(at->second);
    const double expected = p * samples;
    variation += std::abs(found - expected) / samples / 2;
    if (expected < 5) {
      rare_found += found;
      rare_expected += expected;
    } else {
      add(found, expected);
    }
  }
  if (rare_expected > 0) add(rare_found, rare_expected);
  if (freedom > 0) {
    EXPECT_LT(ChiSquareDeviations(statistic, freedom), kOneInAMillion)
        << distribution.size() << " outcomes, chi-square " << statistic;
  }
  EXPECT_LT(variation,
            VariationBound(static_cast<double>(distribution.size()), samples))
      << distribution.size() << " outcomes";
  return variation;
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_TOKEN_COUNTS_FOR_TEST_H_
