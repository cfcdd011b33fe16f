#include "kernels/token/distribution.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/number/philox.h"
#include "kernels/token/distribution_body.h"
#include "kernels/token/distribution_cut.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

// VNNI multiplies bytes, which this op does not.
constexpr PerIsa<GreatestLogitFn*> kGreatestLogit = {
    portable::GreatestLogit, avx2::GreatestLogit, avx512::GreatestLogit,
    avx512::GreatestLogit};
constexpr PerIsa<ExponentiateLogitsFn*> kExponentiateLogits = {
    portable::ExponentiateLogits, avx2::ExponentiateLogits,
    avx512::ExponentiateLogits, avx512::ExponentiateLogits};

constexpr PerIsa<NoiseWordsFn*> kNoiseWords = {
    portable::NoiseWords, avx2::NoiseWords, avx512::NoiseWords,
    avx512::NoiseWords};
constexpr PerIsa<SomeMayWinFn*> kSomeMayWin = {
    portable::SomeMayWin, avx2::SomeMayWin, avx512::SomeMayWin,
    avx512::SomeMayWin};

// Returns true if the tokens from `i` on are a whole block of kNoiseIds.
bool IsWholeBlock(const std::vector<int32_t>& ids, size_t i) {
  constexpr size_t kLast = kNoiseIds - 1;
  return ids[i] % kNoiseIds == 0 && i + kLast < ids.size() &&
         ids[i + kLast] == ids[i] + static_cast<int32_t>(kLast);
}

absl::Status Invalid(const char* field, double got, const char* needed) {
  return UsageError("invalid_sampling",
                    absl::StrCat(field, ": got ", got, ", need ", needed));
}

bool Penalises(const DistributionParams& distribution) {
  return distribution.repeat_penalty != 1.0f ||
         distribution.dry.multiplier > 0.0f;
}

// The logit of a token that must not be drawn: it is finite, and beside any
// greater one its exponential is 0.
constexpr float kForbidden = std::numeric_limits<float>::lowest();

// Leaves no probability to tokens that are not allowed. A logit that is not
// finite stays, and is found.
void Forbid(const TokenSet& allowed, int64_t vocab, float* logits) {
  for (int64_t first = 0; first < vocab; first += 32) {
    const uint32_t word = allowed.words()[static_cast<size_t>(first / 32)];
    if (word == ~uint32_t{0}) continue;
    const int64_t end = std::min(vocab, first + 32);
    for (int64_t id = first; id < end; ++id) {
      const bool stays = (word >> (id - first) & 1) != 0;
      if (!stays && std::isfinite(logits[id])) logits[id] = kForbidden;
    }
  }
}

void PenaliseRepeats(const MakeDistributionsParams& p, int64_t row,
                     float* logits) {
  const int32_t* const end = p.tokens + p.before + row;
  std::vector<int32_t> ids(end - std::min(kRepeatWindow, p.before + row), end);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  for (int32_t id : ids) {
    if (id < 0 || id >= p.vocab) continue;
    float& logit = logits[id];
    logit = logit > 0 ? logit / p.distribution.repeat_penalty
                      : logit * p.distribution.repeat_penalty;
  }
}

void PenaliseRepetitions(const MakeDistributionsParams& p, int64_t row,
                         float* logits) {
  const std::span<const int32_t> answer(p.tokens + p.answer_begin,
                                        p.tokens + p.before + row);
  for (const auto& [id, penalty] : DryPenalties(p.distribution.dry, answer)) {
    if (id < 0 || id >= p.vocab) continue;
    // The logit stays finite, however great the penalty, and above kForbidden.
    logits[id] = std::max(logits[id] - penalty, kForbidden / 2);
  }
}

// Computes the distributions. Threads take ranges of the vocabulary of each
// row. Sums are made within ranges first and then in their order, so that they
// do not depend on the number of threads.
class Distributions {
 public:
  Distributions(Stream& stream, const MakeDistributionsParams& p)
      : stream_(stream),
        p_(p),
        logits_(p.logits),
        row_ranges_((p.vocab + kRange - 1) / kRange),
        distributions_(static_cast<size_t>(p.rows)) {}

  // Penalises and masks the logits. Errors: those of the mask.
  absl::Status ChangeLogits() {
    const bool masks = p_.distribution.mask != nullptr ||
                       (p_.never != nullptr && !p_.never->empty());
    if (!Penalises(p_.distribution) && !masks) return absl::OkStatus();
    changed_.assign(p_.logits, p_.logits + p_.rows * p_.vocab);
    logits_ = changed_.data();
    for (int64_t row = 0; row < p_.rows; ++row) {
      float* const logits = changed_.data() + row * p_.vocab;
      if (p_.distribution.repeat_penalty != 1.0f) {
        PenaliseRepeats(p_, row, logits);
      }
      if (p_.distribution.dry.multiplier > 0.0f) {
        PenaliseRepetitions(p_, row, logits);
      }
      if (!masks) continue;
      ASSIGN_OR_RETURN(TokenSet allowed, AllowedIn(row));
      Forbid(allowed, p_.vocab, logits);
      if (p_.never != nullptr) {
        for (const int32_t id : *p_.never) {
          allowed.Remove(id);
          logits[id] = kForbidden;
        }
      }
      if (allowed.IsEmpty()) empty_.push_back(row);
    }
    return absl::OkStatus();
  }

  // Finds the greatest logit of each row.
  absl::Status FindMaxLogits() {
    GreatestLogitFn* const greatest =
        BodiesOf(stream_.device()) == Bodies::kReference
            ? GreatestLogitReference
            : kGreatestLogit[stream_.isa()];
    greatest_.resize(static_cast<size_t>(p_.rows * row_ranges_));
    ForRanges([&](int64_t row, int64_t begin, int64_t end, size_t range) {
      greatest_[range] =
          greatest(logits_ + row * p_.vocab + begin, end - begin);
    });
    const bool finite = std::all_of(greatest_.begin(), greatest_.end(),
                                    [](float l) { return std::isfinite(l); });
    return finite ? absl::OkStatus() : NotFinite();
  }

  std::vector<Distribution> Make() {
    std::vector<Distribution> made =
        p_.distribution.temperature == 0.0f ? Greedy() : Sampled();
    for (const int64_t row : empty_) made[static_cast<size_t>(row)] = {};
    if (!p_.distribution.keeps_logits) return made;
    for (int64_t row = 0; row < p_.rows; ++row) {
      const float* const logits = p_.logits + row * p_.vocab;
      made[static_cast<size_t>(row)].logits.assign(logits, logits + p_.vocab);
    }
    return made;
  }

 private:
  static constexpr int64_t kRange = 4096;

  absl::StatusOr<TokenSet> AllowedIn(int64_t row) const {
    if (p_.distribution.mask == nullptr) return TokenSet(p_.vocab);
    const auto before = static_cast<size_t>(p_.text_before + row);
    return p_.distribution.mask->Allowed({p_.text, before}, p_.vocab);
  }

  std::vector<Distribution> Greedy() {
    for (int64_t row = 0; row < p_.rows; ++row) {
      const float* const logits = logits_ + row * p_.vocab;
      const int64_t id = GreatestOf(row);
      Distribution& made = distributions_[static_cast<size_t>(row)];
      made = {{static_cast<int32_t>(id)}, {1.0f}};
      if (!p_.distribution.keeps_second) continue;
      const int64_t second = GreatestBeside(row, id);
      if (second == id || logits[second] == kForbidden) continue;
      made.second = static_cast<int32_t>(second);
      made.second_share = 1 / (1 + std::exp(logits[id] - logits[second]));
    }
    return std::move(distributions_);
  }

  // The token with the greatest logit of a row, the lowest id of equals.
  int64_t GreatestOf(int64_t row) const {
    const auto first = greatest_.begin() + row * row_ranges_;
    const int64_t range = std::max_element(first, first + row_ranges_) - first;
    const float* const logits = logits_ + row * p_.vocab;
    return std::find(logits + range * kRange, logits + p_.vocab, first[range]) -
           logits;
  }

  // The token with the greatest logit of a row but for `id`, which has the
  // greatest of all, the lowest id of equals; `id`: the row has no other.
  int64_t GreatestBeside(int64_t row, int64_t id) const {
    const auto first = greatest_.begin() + row * row_ranges_;
    const float* const logits = logits_ + row * p_.vocab;
    int64_t best = id;
    const auto take = [&](int64_t other) {
      if (other == id) return;
      if (best == id || logits[other] > logits[best] ||
          (logits[other] == logits[best] && other < best)) {
        best = other;
      }
    };
    for (int64_t range = 0; range < row_ranges_; ++range) {
      const int64_t begin = range * kRange;
      const int64_t end = std::min(p_.vocab, begin + kRange);
      if (id < begin || id >= end) {
        take(std::find(logits + begin, logits + end, first[range]) - logits);
        continue;
      }
      for (int64_t other = begin; other < end; ++other) take(other);
    }
    return best;
  }

  std::vector<Distribution> Sampled() {
    Exponentiate();
    const DistributionParams& distribution = p_.distribution;
    if (distribution.top_k > 0 || distribution.top_p < 1.0f ||
        distribution.min_p > 0.0f) {
      for (int64_t row = 0; row < p_.rows; ++row) {
        Distribution& made = distributions_[static_cast<size_t>(row)];
        made = CutDistribution(distribution, logits_ + row * p_.vocab,
                               made.probabilities, Total(row));
      }
      return std::move(distributions_);
    }
    for (Distribution& made : distributions_)
      made.ids.resize(static_cast<size_t>(p_.vocab));
    ForRanges([&](int64_t row, int64_t begin, int64_t end, size_t) {
      Distribution& made = distributions_[static_cast<size_t>(row)];
      const double share = 1 / Total(row);
      for (int64_t id = begin; id < end; ++id) {
        const auto i = static_cast<size_t>(id);
        made.ids[i] = static_cast<int32_t>(id);
        made.probabilities[i] = static_cast<float>(
            static_cast<double>(made.probabilities[i]) * share);
      }
    });
    return std::move(distributions_);
  }

  // Calls body(row, begin, end, number of the range).
  template <typename Body>
  void ForRanges(Body body) {
    stream_.pool().ParallelFor(
        p_.rows * row_ranges_, 1, [&](int64_t range, int64_t, int) {
          const int64_t begin = range % row_ranges_ * kRange;
          body(range / row_ranges_, begin, std::min(p_.vocab, begin + kRange),
               static_cast<size_t>(range));
        });
  }

  // Computes the probabilities, not yet divided by their sum. They are relative
  // to the greatest, so that no exponent overflows however small the
  // temperature.
  void Exponentiate() {
    ExponentiateLogitsFn* const exponentiate =
        BodiesOf(stream_.device()) == Bodies::kReference
            ? ExponentiateLogitsReference
            : kExponentiateLogits[stream_.isa()];
    for (Distribution& distribution : distributions_) {
      distribution.probabilities.resize(static_cast<size_t>(p_.vocab));
    }
    sums_.resize(greatest_.size());
    ForRanges([&](int64_t row, int64_t begin, int64_t end, size_t range) {
      const auto first = greatest_.begin() + row * row_ranges_;
      sums_[range] = exponentiate(
          logits_ + row * p_.vocab + begin, end - begin,
          *std::max_element(first, first + row_ranges_),
          p_.distribution.temperature,
          distributions_[static_cast<size_t>(row)].probabilities.data() +
              begin);
    });
  }

  double Total(int64_t row) const {
    const auto first = sums_.begin() + row * row_ranges_;
    return std::accumulate(first, first + row_ranges_, 0.0);
  }

  absl::Status NotFinite() const {
    const float* const bad =
        std::find_if(logits_, logits_ + p_.rows * p_.vocab,
                     [](float l) { return !std::isfinite(l); });
    return InternalError(
        "non_finite",
        absl::StrCat("logit ", *bad, " of token ", (bad - logits_) % p_.vocab,
                     ": the model's weights or its input are broken, or a "
                     "repeat penalty of ",
                     p_.distribution.repeat_penalty, " is too small"));
  }

  Stream& stream_;
  const MakeDistributionsParams& p_;
  std::vector<float> changed_;
  std::vector<int64_t> empty_;  // rows in which no token is allowed
  const float* logits_;
  const int64_t row_ranges_;     // ranges of one row
  std::vector<float> greatest_;  // [rows, row_ranges_]
  std::vector<double> sums_;     // [rows, row_ranges_]
  std::vector<Distribution> distributions_;
};

}  // namespace

absl::Status ValidateDistributionParams(const DistributionParams& params) {
  // Conditions are written so that NaN fails them.
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
  if (!(params.dry.multiplier >= 0.0f && params.dry.multiplier <= 100.0f)) {
    return Invalid("dry_multiplier", params.dry.multiplier, "0 to 100");
  }
  if (!(params.dry.base >= 1.0f && params.dry.base <= 100.0f)) {
    return Invalid("dry_base", params.dry.base, "1 to 100");
  }
  if (params.dry.allowed_length < 1) {
    return Invalid("dry_allowed_length", params.dry.allowed_length,
                   "1 or more");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Distribution>> MakeDistributions(
    Stream& stream, const MakeDistributionsParams& p) {
  RETURN_IF_ERROR(ValidateDistributionParams(p.distribution));
  const bool tokens = p.tokens != nullptr || !Penalises(p.distribution);
  if (p.logits == nullptr || p.rows < 1 || p.vocab < 1 || p.before < 0 ||
      p.answer_begin < 0 || p.answer_begin > p.before || !tokens) {
    return UsageError(
        "invalid_argument",
        absl::StrCat("MakeDistributions: rows=", p.rows, ", vocab=", p.vocab,
                     ", before=", p.before, ", answer_begin=", p.answer_begin,
                     "; need logits of at least one row and one token, for "
                     "penalties the tokens before them, and an answer that "
                     "begins within these"));
  }
  Distributions distributions(stream, p);
  RETURN_IF_ERROR(distributions.ChangeLogits());
  RETURN_IF_ERROR(distributions.FindMaxLogits());
  return distributions.Make();
}

int32_t Draw(const Distribution& distribution, uint64_t seed,
             int64_t position) {
  // argmax log p + g with g = -log(-log u) is argmin of -log(u) / p.
  if (distribution.ids.empty()) return kNoToken;
  double least = std::numeric_limits<double>::infinity();
  int32_t drawn = distribution.ids[0];
  const auto at = static_cast<uint64_t>(position);
  // Every ISA gives the same bits, and to ask for it takes longer than to draw.
  static const Isa isa = ChooseIsa().value_or(Isa::kPortable);
  int32_t block = -1;  // the block of tokens that `words` are for
  std::array<uint32_t, kNoiseIds> words;
  const auto noise = [&](int32_t id) {
    if (id / kNoiseIds != block) {
      block = id / kNoiseIds;
      kNoiseWords[isa](seed, at, static_cast<uint32_t>(block * kNoiseIds),
                       words.data());
    }
    return words[static_cast<size_t>(id % kNoiseIds)];
  };
  for (size_t i = 0; i < distribution.ids.size(); ++i) {
    const int32_t id = distribution.ids[i];
    if (IsWholeBlock(distribution.ids, i)) {
      (void)noise(id);
      if (!kSomeMayWin[isa](&distribution.probabilities[i], words.data(),
                            least)) {
        i += kNoiseIds - 1;
        continue;
      }
    }
    // -log(u) is greater than 1 - u, so a token that cannot win by 1 - u needs
    // no logarithm, and one that cannot win with any u needs no noise. (The
    // difference is at least 2^-34 of it, far more than rounding.)
    const auto p = static_cast<double>(distribution.probabilities[i]);
    const double to_win = least * p;
    if (to_win <= 1 - kGreatestUniform) continue;
    const double u = OpenUniform(noise(id));
    if (to_win <= 1 - u) continue;
    const double wait = -std::log(u) / p;
    if (wait < least) {
      least = wait;
      drawn = id;
    }
  }
  return drawn;
}

}  // namespace tiercel
