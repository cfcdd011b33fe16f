#ifndef TIERCEL_KERNELS_TOKEN_COUNTS_FOR_TEST_H_
#define TIERCEL_KERNELS_TOKEN_COUNTS_FOR_TEST_H_

// Counts of outcomes against the law that they are to have.

#include <cmath>
#include <cstdint>
#include <map>

#include "gtest/gtest.h"

namespace tiercel {

// How many standard deviations a chi-square statistic is beyond its mean
// (Wilson and Hilferty 1931).
inline double ChiSquareDeviations(double statistic, double freedom) {
  const double ninth = 2 / (9 * freedom);
  return (std::cbrt(statistic / freedom) - (1 - ninth)) / std::sqrt(ninth);
}
// The normal quantile of 1 - 1e-6.
inline constexpr double kOneInAMillion = 4.75;

// What the total variation between a law of `outcomes` and the shares of
// `samples` draws from it exceeds once in a million at most. Its mean is at
// most 1/2 sum sqrt(p (1 - p) / samples) <= 1/2 sqrt(outcomes / samples)
// (Jensen, Cauchy and Schwarz). A draw moves it by 1 / samples at most, so it
// is t beyond its mean with probability exp(-2 samples t^2) (McDiarmid).
inline double VariationBound(double outcomes, double samples) {
  return 0.5 * std::sqrt(outcomes / samples) +
         std::sqrt(std::log(1e6) / (2 * samples));
}

// How many samples make that bound `variation`.
inline int64_t SamplesFor(double outcomes, double variation) {
  const double root =
      (0.5 * std::sqrt(outcomes) + std::sqrt(std::log(1e6) / 2)) / variation;
  return static_cast<int64_t>(root * root) + 1;
}

// Fails where an outcome has no place in the law, and where the chi-square
// statistic or the total variation is beyond what chance allows but once in a
// million. Returns the total variation.
template <typename Outcome>
double ExpectCounts(const std::map<Outcome, double>& law,
                    const std::map<Outcome, int64_t>& counts) {
  double samples = 0;
  for (const auto& [outcome, count] : counts) {
    EXPECT_TRUE(law.count(outcome)) << testing::PrintToString(outcome);
    samples += static_cast<double>(count);
  }
  double variation = 0;
  double statistic = 0;
  double freedom = -1;
  const auto add = [&](double found, double expected) {
    statistic += (found - expected) * (found - expected) / expected;
    freedom += 1;
  };
  double rare_found = 0;  // too few for the approximation: together
  double rare_expected = 0;
  for (const auto& [outcome, p] : law) {
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
        << law.size() << " outcomes, chi-square " << statistic;
  }
  EXPECT_LT(variation, VariationBound(static_cast<double>(law.size()), samples))
      << law.size() << " outcomes";
  return variation;
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_TOKEN_COUNTS_FOR_TEST_H_
