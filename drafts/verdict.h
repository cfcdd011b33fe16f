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

// `distribution` without one of its tokens; empty if it has no other.
template <typename L>
L WithoutToken(const L& distribution, int32_t id) {
  L rest;
  NumberOf<L> total(0);
  for (size_t i = 0; i < distribution.ids.size(); ++i) {
    const NumberOf<L> p = distribution.probabilities[i];
    if (distribution.ids[i] == id || !(NumberOf<L>(0) < p)) continue;
    rest.ids.push_back(distribution.ids[i]);
    rest.probabilities.push_back(p);
    total = total + p;
  }
  for (NumberOf<L>& p : rest.probabilities) p = p / total;
  return rest;
}

// The outcome of checking a drafted block: the number of tokens that hold, and
// the token that follows them. If a branch holds these are the tokens before
// it, then so many of its own.
struct Verdict {
  size_t accepted = 0;
  int32_t next = 0;
  int branch = -1;  // -1: none holds
  size_t of_branch = 0;
};

// Drafted tokens with the distributions that they were drawn from, and the
// target's: `targets[i]` follows i of the tokens, one more than there are.
template <typename L>
struct Chain {
  const std::vector<int32_t>& tokens;
  const std::vector<L>& drafts;
  const std::vector<L>& targets;
};
// A branch in place `at` of a chain. targets[i] follows i + 1 of its tokens.
template <typename L>
struct Branch {
  size_t at;
  Chain<L> chain;
};

// The index of the branch in place `at`; -1: there is none.
template <typename L>
int BranchAt(const std::vector<Branch<L>>& branches, size_t at) {
  for (size_t i = 0; i < branches.size(); ++i) {
    if (branches[i].at == at) return static_cast<int>(i);
  }
  return -1;
}

// `chance` decides: Accept(probability, i) returns true if the token in place i
// holds, AcceptBranch(probability, i) if the first of the branch there does,
// and Draw(distribution, i) draws the token in place i. A first token that does
// not hold leaves the residual, of which the branch is a draft in turn: the
// tokens of one place are checked as draws without replacement (SpecInfer,
// algorithm 2).
template <typename L, typename Chance>
Verdict JudgeResidual(const Chain<L>& chain,
                      const std::vector<Branch<L>>& branches, Chance& chance) {
  const auto& [tokens, drafts, targets] = chain;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (chance.Accept(AcceptanceOf(targets[i], drafts[i], tokens[i]), i)) {
      continue;
    }
    L rest = ResidualOf(targets[i], drafts[i]);
    const int index = BranchAt(branches, i);
    if (index < 0) return {i, chance.Draw(rest, i)};
    const auto& [others, of_others, behind] =
        branches[static_cast<size_t>(index)].chain;
    if (!chance.AcceptBranch(AcceptanceOf(rest, of_others[0], others[0]), i)) {
      return {i, chance.Draw(ResidualOf(rest, of_others[0]), i)};
    }
    for (size_t k = 1;; ++k) {
      const L& target = behind[k - 1];
      if (k == others.size()) {
        return {i, chance.Draw(target, i + k), index, k};
      }
      if (!chance.Accept(AcceptanceOf(target, of_others[k], others[k]),
                         i + k)) {
        return {i, chance.Draw(ResidualOf(target, of_others[k]), i + k), index,
                k};
      }
    }
  }
  return {tokens.size(), chance.Draw(targets[tokens.size()], tokens.size())};
}

// The target draws each token itself, with noise that every level shares. A
// drafted token holds if it is the one that the target draws, so the text for a
// seed is the same whatever drafted it.
template <typename L, typename Chance>
Verdict JudgeCoupled(const Chain<L>& chain,
                     const std::vector<Branch<L>>& branches, Chance& chance) {
  const auto& [tokens, drafts, targets] = chain;
  for (size_t i = 0;; ++i) {
    const int32_t drawn = chance.Draw(targets[i], i);
    if (i < tokens.size() && drawn == tokens[i]) continue;
    const int index = BranchAt(branches, i);
    if (index < 0) return {i, drawn};
    const auto& [others, of_others, behind] =
        branches[static_cast<size_t>(index)].chain;
    if (drawn != others[0]) return {i, drawn};
    for (size_t k = 1;; ++k) {
      const int32_t next = chance.Draw(behind[k - 1], i + k);
      if (k == others.size() || next != others[k]) return {i, next, index, k};
    }
  }
}

}  // namespace tiercel

#endif  // TIERCEL_DRAFTS_VERDICT_H_
