#ifndef TIERCEL_DRAFTS_VERDICT_H_
#define TIERCEL_DRAFTS_VERDICT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace tiercel {

// Speculative sampling (Leviathan, Kalman and Matias 2023; Chen et al. 2023):
// tokens proposed from a draft distribution q are kept or replaced so that the
// output has exactly the target's distribution P. The templates take any
// distribution, a list of `ids` and their `probabilities`, over any kind of
// number: tests enumerate every branch in rationals.

template <typename L>
using NumberOf = typename std::decay_t<
    decltype(std::declval<L>().probabilities)>::value_type;

template <typename L>
NumberOf<L> ProbabilityOf(const L& distribution, int32_t id) {
  const auto found =
      std::find(distribution.ids.begin(), distribution.ids.end(), id);
  if (found == distribution.ids.end()) return NumberOf<L>(0);
  return distribution
      .probabilities[static_cast<size_t>(found - distribution.ids.begin())];
}

// The chance that `id`, which was drawn from `draft`, is accepted: min(1, P /
// q).
template <typename L>
NumberOf<L> AcceptanceOf(const L& target, const L& draft, int32_t id) {
  const NumberOf<L> p = ProbabilityOf(target, id);
  const NumberOf<L> q = ProbabilityOf(draft, id);
  return p < q ? p / q : NumberOf<L>(1);
}

// The distribution of the token that replaces a rejected one: norm(max(P - q,
// 0)), or P itself if rounding leaves nothing of that.
template <typename L>
L ResidualOf(const L& target, const L& draft) {
  std::vector<std::pair<int32_t, NumberOf<L>>> q;  // by id
  for (size_t i = 0; i < draft.ids.size(); ++i) {
    q.emplace_back(draft.ids[i], draft.probabilities[i]);
  }
  const auto lower = [](const auto& a, const auto& b) {
    return a.first < b.first;
  };
  std::sort(q.begin(), q.end(), lower);
  L residual;
  NumberOf<L> total(0);
  for (size_t i = 0; i < target.ids.size(); ++i) {
    const int32_t id = target.ids[i];
    NumberOf<L> rest = target.probabilities[i];
    const auto drafted = std::lower_bound(q.begin(), q.end(),
                                          std::pair(id, NumberOf<L>(0)), lower);
    if (drafted != q.end() && drafted->first == id) {
      rest = rest - drafted->second;
    }
    if (!(NumberOf<L>(0) < rest)) continue;
    residual.ids.push_back(id);
    residual.probabilities.push_back(rest);
    total = total + rest;
  }
  if (residual.ids.empty()) return target;
  for (NumberOf<L>& p : residual.probabilities) p = p / total;
  return residual;
}

// The outcome of checking a drafted block: the number of tokens that hold, and
// the token that follows them.
struct Verdict {
  size_t accepted = 0;
  int32_t next = 0;
};

// `targets[i]` is the target's distribution after i of the drafted `tokens`,
// and token i was drawn from `drafts[i]`; there is one more target than tokens.
// `chance` decides: Accept(probability, i) returns true if token i holds, and
// Draw(distribution, i) draws the token in place i.
template <typename L, typename Chance>
Verdict JudgeResidual(const std::vector<int32_t>& tokens,
                      const std::vector<L>& drafts,
                      const std::vector<L>& targets, Chance& chance) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (chance.Accept(AcceptanceOf(targets[i], drafts[i], tokens[i]), i)) {
      continue;
    }
    return {i, chance.Draw(ResidualOf(targets[i], drafts[i]), i)};
  }
  return {tokens.size(), chance.Draw(targets[tokens.size()], tokens.size())};
}

// The target draws each token itself, with noise that every level shares. A
// drafted token holds if it is the one that the target draws, so the text for a
// seed is the same whatever drafted it.
template <typename L, typename Chance>
Verdict JudgeCoupled(const std::vector<int32_t>& tokens,
                     const std::vector<L>& targets, Chance& chance) {
  for (size_t i = 0;; ++i) {
    const int32_t drawn = chance.Draw(targets[i], i);
    if (i == tokens.size() || drawn != tokens[i]) return {i, drawn};
  }
}

}  // namespace tiercel

#endif  // TIERCEL_DRAFTS_VERDICT_H_
