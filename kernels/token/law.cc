#include "kernels/token/law.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"

namespace tiercel {
namespace {

absl::Status Invalid(const char* field, double got, const char* needed) {
  return UsageError("invalid_sampling",
                    absl::StrCat(field, ": got ", got, ", need ", needed));
}

// One surviving token. Ordered likeliest first, lower id first of equals.
struct Candidate {
  float logit;
  int32_t id;

  bool operator<(const Candidate& other) const {
    return logit != other.logit ? logit > other.logit : id < other.id;
  }
};

void Penalise(const MakeLawParams& p, std::vector<Candidate>& candidates) {
  if (p.law.repeat_penalty == 1.0f) return;
  std::vector<int32_t> ids(p.recent, p.recent + p.num_recent);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  for (int32_t id : ids) {
    if (id < 0 || id >= p.vocab) continue;
    float& logit = candidates[static_cast<size_t>(id)].logit;
    logit =
        logit > 0 ? logit / p.law.repeat_penalty : logit * p.law.repeat_penalty;
  }
}

// Puts candidates[sorted, sorted + more) into place; those before are.
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

// Applies top-p and min-p: puts the survivors first and returns their weights.
// Candidates are sorted in growing runs, only as far as the cuts look; with no
// cut nothing is sorted.
template <typename Weight>
std::vector<double> CutByProbability(const LawParams& law, Weight weight,
                                     std::vector<Candidate>& candidates) {
  std::vector<double> weights;
  weights.reserve(candidates.size());
  if (law.top_p == 1.0f && law.min_p == 0.0f) {
    for (const Candidate& c : candidates) weights.push_back(weight(c));
    return weights;
  }
  double needed = std::numeric_limits<double>::infinity();
  if (law.top_p < 1.0f) {
    double total = 0;
    for (const Candidate& c : candidates) total += weight(c);
    needed = law.top_p * total;
  }
  const double least = law.min_p;  // the greatest weight is 1
  double kept = 0;
  for (size_t sorted = 0; sorted < candidates.size();) {
    const size_t run = std::max<size_t>(256, sorted);
    SortFurther(candidates, sorted, run);
    const size_t end = std::min(candidates.size(), sorted + run);
    for (; sorted < end; ++sorted) {
      const double w = weight(candidates[sorted]);
      if (kept >= needed || w < least) return weights;
      weights.push_back(w);
      kept += w;
    }
  }
  return weights;
}

}  // namespace

absl::Status ValidateLawParams(const LawParams& params) {
  // Written so that NaN fails every test.
  if (!(params.temperature >= 0.0f && params.temperature <= 100.0f)) {
    return Invalid("temperature", params.temperature, "0 to 100");
  }
  if (params.top_k < 0) return Invalid("top_k", params.top_k, "0 or more");
  if (!(params.top_p > 0.0f && params.top_p <= 1.0f)) {
    return Invalid("top_p", params.top_p, "over 0, at most 1");
  }
  if (!(params.min_p >= 0.0f && params.min_p <= 1.0f)) {
    return Invalid("min_p", params.min_p, "0 to 1");
  }
  if (!(params.repeat_penalty > 0.0f && params.repeat_penalty <= 100.0f)) {
    return Invalid("repeat_penalty", params.repeat_penalty,
                   "over 0, at most 100");
  }
  return absl::OkStatus();
}

absl::StatusOr<Law> MakeLaw(Stream&, const MakeLawParams& p) {
  if (absl::Status s = ValidateLawParams(p.law); !s.ok()) return s;
  if (p.logits == nullptr || p.vocab < 1) {
    return InternalError("invalid_argument",
                         absl::StrCat("MakeLaw: vocab=", p.vocab,
                                      "; need logits of at least one token"));
  }
  std::vector<Candidate> candidates(static_cast<size_t>(p.vocab));
  for (int64_t id = 0; id < p.vocab; ++id) {
    if (!std::isfinite(p.logits[id])) {
      return InternalError(
          "non_finite",
          absl::StrCat("the model gave logit ", p.logits[id], " for token ", id,
                       "; its weights or its input are broken"));
    }
    candidates[static_cast<size_t>(id)] = {p.logits[id],
                                           static_cast<int32_t>(id)};
  }
  Penalise(p, candidates);

  if (p.law.temperature == 0.0f) {
    return Law{{std::min_element(candidates.begin(), candidates.end())->id},
               {1.0f}};
  }

  // Temperature. In double and relative to the greatest, so that no exponent
  // overflows however small the temperature.
  const float greatest =
      std::min_element(candidates.begin(), candidates.end())->logit;
  const auto weight = [&](const Candidate& c) {
    return std::exp((static_cast<double>(c.logit) - greatest) /
                    p.law.temperature);
  };

  if (p.law.top_k > 0 && static_cast<size_t>(p.law.top_k) < candidates.size()) {
    SortFurther(candidates, 0, static_cast<size_t>(p.law.top_k));
    candidates.resize(static_cast<size_t>(p.law.top_k));
  }

  std::vector<double> weights = CutByProbability(p.law, weight, candidates);
  double total = 0;
  for (double w : weights) total += w;

  Law law;
  law.ids.reserve(weights.size());
  law.probabilities.reserve(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    law.ids.push_back(candidates[i].id);
    law.probabilities.push_back(static_cast<float>(weights[i] / total));
  }
  return law;
}

int32_t Draw(const Law& law, uint64_t seed, int64_t position) {
  // argmax log p + g with g = -log(-log u) is argmin of -log(u) / p.
  double least = std::numeric_limits<double>::infinity();
  int32_t drawn = law.ids[0];
  const auto at = static_cast<uint64_t>(position);
  uint32_t group = std::numeric_limits<uint32_t>::max();
  std::array<uint32_t, 4> words{};
  for (size_t i = 0; i < law.ids.size(); ++i) {
    const auto id = static_cast<uint32_t>(law.ids[i]);
    if (id / 4 != group) {
      group = id / 4;
      words = Philox({static_cast<uint32_t>(at),
                      static_cast<uint32_t>(at >> 32), group, 0},
                     seed);
    }
    const double wait = -std::log(OpenUniform(words[id % 4])) /
                        static_cast<double>(law.probabilities[i]);
    if (wait < least) {
      least = wait;
      drawn = law.ids[i];
    }
  }
  return drawn;
}

}  // namespace tiercel
