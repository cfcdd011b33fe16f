#include "kernels/token/distribution_cut.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

namespace tiercel {
namespace {

// A token that the cuts may leave. Candidates are ordered by likelihood, equals
// by id.
struct Candidate {
  float logit;
  int32_t id;

  bool operator<(const Candidate& other) const {
    return logit != other.logit ? logit > other.logit : id < other.id;
  }
};

double Weight(const std::vector<float>& weights, const Candidate& c) {
  return static_cast<double>(weights[static_cast<size_t>(c.id)]);
}

// Sorts candidates[sorted, sorted + more); those before are sorted already.
void SortFurther(std::vector<Candidate>& candidates, size_t sorted,
                 size_t more) {
  const auto begin = candidates.begin() + static_cast<std::ptrdiff_t>(sorted);
  if (sorted + more >= candidates.size()) {
    std::sort(begin, candidates.end());
    return;
  }
  const auto middle = begin + static_cast<std::ptrdiff_t>(more);
  std::nth_element(begin, middle, candidates.end());
  std::sort(begin, middle);
}

// The `k` likeliest tokens; vocab > k.
std::vector<Candidate> TopK(const float* logits, size_t vocab, size_t k) {
  // The greatest logits of k ranges of the vocabulary are at or above `least`,
  // so at least k logits are.
  const size_t range = std::max<size_t>(1, vocab / (4 * k));
  std::vector<float> greatest;
  for (size_t begin = 0; begin < vocab; begin += range) {
    greatest.push_back(*std::max_element(
        logits + begin, logits + std::min(vocab, begin + range)));
  }
  const auto kth = greatest.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(greatest.begin(), kth, greatest.end(), std::greater<>());
  const float least = *kth;
  std::vector<Candidate> candidates;
  for (size_t id = 0; id < vocab; ++id) {
    if (logits[id] < least) continue;
    candidates.push_back({logits[id], static_cast<int32_t>(id)});
  }
  SortFurther(candidates, 0, k);
  candidates.resize(k);
  return candidates;
}

// The tokens that top-p and min-p may leave.
std::vector<Candidate> Likely(const DistributionParams& distribution,
                              const float* logits,
                              const std::vector<float>& weights, double total) {
  // All tokens with a weight below `least` are last in order, and together less
  // than half of the weight that top-p cuts.
  const double cut = (1 - static_cast<double>(distribution.top_p)) * total;
  const double least =
      std::max(static_cast<double>(distribution.min_p),
               cut / (2 * static_cast<double>(weights.size())));
  std::vector<Candidate> candidates;
  for (size_t id = 0; id < weights.size(); ++id) {
    if (static_cast<double>(weights[id]) < least) continue;
    candidates.push_back({logits[id], static_cast<int32_t>(id)});
  }
  return candidates;
}

// Applies top-p and min-p. Puts the tokens that stay first, returns their
// number, and sets `total` to the sum of their weights. Candidates are sorted
// in growing runs, only as far as needed.
size_t CutByProbability(const DistributionParams& distribution,
                        const std::vector<float>& weights,
                        std::vector<Candidate>& candidates, double* total) {
  if (distribution.top_p == 1.0f && distribution.min_p == 0.0f)
    return candidates.size();
  const double needed = distribution.top_p < 1.0f
                            ? distribution.top_p * *total
                            : std::numeric_limits<double>::infinity();
  const double least = distribution.min_p;  // the greatest weight is 1
  double kept = 0;
  size_t survivors = 0;
  for (size_t sorted = 0; survivors < candidates.size();) {
    if (survivors == sorted) {
      const size_t run = std::max<size_t>(256, sorted);
      SortFurther(candidates, sorted, run);
      sorted = std::min(candidates.size(), sorted + run);
    }
    const double w = Weight(weights, candidates[survivors]);
    if (kept >= needed || w < least) break;
    kept += w;
    ++survivors;
  }
  *total = kept;
  return survivors;
}

}  // namespace

Distribution CutDistribution(const DistributionParams& params,
                             const float* logits,
                             const std::vector<float>& weights, double total) {
  const auto k = static_cast<size_t>(params.top_k);
  const bool top_k = k > 0 && k < weights.size();
  std::vector<Candidate> candidates =
      top_k ? TopK(logits, weights.size(), k)
            : Likely(params, logits, weights, total);
  if (top_k || params.top_p == 1.0f) {
    total = 0;
    for (const Candidate& c : candidates) total += Weight(weights, c);
  }
  // Without top-k and top-p, min-p has been applied and order does not matter.
  if (top_k || params.top_p < 1.0f) {
    candidates.resize(CutByProbability(params, weights, candidates, &total));
  }
  Distribution distribution;
  distribution.ids.reserve(candidates.size());
  distribution.probabilities.reserve(candidates.size());
  for (const Candidate& c : candidates) {
    distribution.ids.push_back(c.id);
    distribution.probabilities.push_back(
        static_cast<float>(Weight(weights, c) / total));
  }
  return distribution;
}

}  // namespace tiercel
