// The exact distribution of the output of speculation: every branch of
// drafting, accepting and replacing is walked in rationals, with the code that
// runs.

#include "drafts/verdict.h"

#include <functional>
#include <map>
#include <vector>

#include "drafts/rational_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/token/distribution.h"

namespace tiercel::verdict_test {
namespace {

using Ids = std::vector<int32_t>;

struct ExactDistribution {
  Ids ids;
  std::vector<Rational> probabilities;
};

// A model whose distribution depends on the last two tokens, by a table of
// weights.
class Table {
 public:
  using Mask = std::function<bool(const Ids& before, int32_t id)>;
  Table(int vocab, std::vector<std::vector<int>> weights)
      : vocab_(vocab), weights_(std::move(weights)) {}
  Table(const Table& unmasked, Mask mask)
      : vocab_(unmasked.vocab_),
        weights_(unmasked.weights_),
        mask_(std::move(mask)) {}

  ExactDistribution After(const Ids& tokens) const {
    size_t row = 0;
    for (size_t i = tokens.size() < 2 ? 0 : tokens.size() - 2;
         i < tokens.size(); ++i) {
      row = row * static_cast<size_t>(vocab_) + static_cast<size_t>(tokens[i]);
    }
    std::vector<int> weights = weights_[row % weights_.size()];
    for (int32_t id = 0; mask_ && id < vocab_; ++id) {
      if (!mask_(tokens, id)) weights[static_cast<size_t>(id)] = 0;
    }
    int64_t total = 0;
    for (int w : weights) total += w;
    ExactDistribution distribution;
    for (int32_t id = 0; id < vocab_; ++id) {
      if (weights[static_cast<size_t>(id)] == 0) continue;  // cut off
      distribution.ids.push_back(id);
      distribution.probabilities.emplace_back(weights[static_cast<size_t>(id)],
                                              total);
    }
    return distribution;
  }

 private:
  int vocab_;
  std::vector<std::vector<int>> weights_;
  Mask mask_;  // null: all tokens may follow
};

// Takes the decisions of a given path, multiplies their probabilities, and
// knows the next path: it walks all of them depth first.
class Walker {
 public:
  // Runs `walk` once for every sequence of decisions.
  static void ForAll(const std::function<void(Walker&)>& walk) {
    Walker walker;
    do {
      walker.depth_ = 0;
      walker.probability = 1;
      walk(walker);
    } while (walker.Next());
  }

  bool AcceptBranch(Rational chance, size_t i) { return Accept(chance, i); }
  bool Accept(Rational chance, size_t /*i*/) {
    const Rational refuse = Rational(1) - chance;
    std::vector<Rational> ways;
    std::vector<int32_t> means;
    if (Rational(0) < chance) {
      ways.push_back(chance);
      means.push_back(1);
    }
    if (Rational(0) < refuse) {
      ways.push_back(refuse);
      means.push_back(0);
    }
    return means[Decide(ways)] == 1;
  }
  int32_t Draw(const ExactDistribution& distribution, size_t /*i*/) {
    if (distribution.ids.empty()) return kNoToken;
    return distribution.ids[Decide(distribution.probabilities)];
  }

  Rational probability = 1;

 private:
  size_t Decide(const std::vector<Rational>& ways) {
    if (depth_ == path_.size()) path_.push_back({0, ways.size()});
    const size_t way = path_[depth_++].first;
    probability = probability * ways[way];
    return way;
  }
  bool Next() {
    while (!path_.empty()) {
      if (++path_.back().first < path_.back().second) return true;
      path_.pop_back();
    }
    return false;
  }

  std::vector<std::pair<size_t, size_t>> path_;  // way taken, ways there are
  size_t depth_ = 0;
};

using Distribution = std::map<Ids, Rational>;

// A round maps the tokens so far to the tokens that it adds: none, if none may
// follow.
using Round = std::function<Ids(Walker&, const Ids&)>;

// The distribution of the first `length` tokens over repeated rounds.
Distribution Outputs(const Round& round, size_t length) {
  Distribution outputs;
  Walker::ForAll([&](Walker& walker) {
    Ids tokens;
    while (tokens.size() < length) {
      const Ids more = round(walker, tokens);
      if (more.empty()) tokens.resize(length, kNoToken);
      tokens.insert(tokens.end(), more.begin(), more.end());
    }
    tokens.resize(length);
    Rational& sum = outputs[tokens];
    sum = sum + walker.probability;
  });
  return outputs;
}

Ids Joined(Ids tokens, const Ids& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

// A drafted block: the tokens, the distribution each was drawn from, and
// branches.
struct Block {
  struct Branching {
    size_t at;
    Ids tokens;
    std::vector<ExactDistribution> distributions;
  };
  Ids tokens;
  std::vector<ExactDistribution> distributions;
  std::vector<Branching> branches = {};
};
using Drafter = std::function<Block(Walker&, const Ids&, size_t)>;

Drafter Alone(const Table& model) {
  return [&model](Walker& walker, const Ids& before, size_t most) {
    Block block;
    while (block.tokens.size() < most) {
      const ExactDistribution next = model.After(Joined(before, block.tokens));
      if (next.ids.empty()) break;
      block.distributions.push_back(next);
      block.tokens.push_back(walker.Draw(next, 0));
    }
    return block;
  };
}

std::vector<ExactDistribution> Targets(const Table& target, const Ids& before,
                                       const Ids& block) {
  std::vector<ExactDistribution> distributions;
  for (size_t i = 0; i <= block.size(); ++i) {
    distributions.push_back(
        target.After(Joined(before, {block.begin(), block.begin() + i})));
  }
  return distributions;
}

Ids First(const Ids& tokens, size_t count) {
  return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count)};
}

// The tokens that a check of `block` adds behind `before`.
Ids Checked(const Table& target, const Ids& before, const Block& block,
            Walker& walker) {
  const std::vector<ExactDistribution> targets =
      Targets(target, before, block.tokens);
  std::vector<std::vector<ExactDistribution>> behind;
  std::vector<Branch<ExactDistribution>> branches;
  behind.reserve(block.branches.size());
  for (const Block::Branching& branch : block.branches) {
    behind.push_back(Targets(
        target, Joined(before, First(block.tokens, branch.at)), branch.tokens));
    behind.back().erase(behind.back().begin());
    branches.push_back(
        {branch.at, {branch.tokens, branch.distributions, behind.back()}});
  }
  const Chain<ExactDistribution> chain = {block.tokens, block.distributions,
                                          targets};
  const Verdict verdict = JudgeResidual(chain, branches, walker);
  Ids kept = First(block.tokens, verdict.accepted);
  if (verdict.branch >= 0) {
    const auto& own = block.branches[static_cast<size_t>(verdict.branch)];
    EXPECT_EQ(own.at, verdict.accepted);
    kept = Joined(kept, First(own.tokens, verdict.of_branch));
  }
  if (verdict.next != kNoToken) kept.push_back(verdict.next);
  return kept;
}

Round Verified(const Table& target, Drafter draft, size_t gamma) {
  return [&target, draft = std::move(draft), gamma](Walker& walker,
                                                    const Ids& before) {
    return Checked(target, before, draft(walker, before, gamma), walker);
  };
}

// A drafter that checks another one: its tokens have the distribution of its
// own model.
Drafter Verifying(const Table& model, Drafter inner, size_t gamma) {
  return [&model, inner = std::move(inner), gamma](
             Walker& walker, const Ids& before, size_t most) {
    Block block;
    while (block.tokens.size() < most) {
      const Ids so_far = Joined(before, block.tokens);
      const Block guess = inner(walker, so_far, gamma);
      const std::vector<ExactDistribution> distributions =
          Targets(model, so_far, guess.tokens);
      const Ids kept = Checked(model, so_far, guess, walker);
      if (kept.empty()) break;
      for (size_t i = 0; i < kept.size(); ++i) {
        block.tokens.push_back(kept[i]);
        block.distributions.push_back(distributions[i]);
      }
    }
    return block;
  };
}

// The model by itself.
Round Plain(const Table& model) {
  return [&model](Walker& walker, const Ids& before) {
    const int32_t next = walker.Draw(model.After(before), 0);
    return next == kNoToken ? Ids() : Ids{next};
  };
}

void ExpectEqual(const Distribution& got, const Distribution& want) {
  Rational total(0);
  for (const auto& [tokens, p] : got) {
    total = total + p;
    const auto found = want.find(tokens);
    ASSERT_NE(found, want.end()) << testing::PrintToString(tokens);
    EXPECT_TRUE(found->second == p)
        << testing::PrintToString(tokens) << ": got " << p.AsDouble()
        << ", want " << found->second.AsDouble();
  }
  EXPECT_TRUE(total == Rational(1));
  EXPECT_EQ(got.size(), want.size());
}

// Weights that reduce well, with zeros as a sampler's cut makes them.
const Table kTarget(
    4, {{1, 2, 1, 0}, {0, 1, 1, 2}, {2, 1, 0, 1}, {4, 0, 0, 0}, {1, 1, 1, 1}});
const Table kDraft(
    4, {{2, 1, 0, 1}, {1, 1, 2, 0}, {1, 1, 1, 1}, {0, 2, 1, 1}, {2, 0, 2, 0}});
const Table kMiddle(
    4, {{1, 1, 1, 1}, {1, 0, 1, 2}, {2, 2, 0, 0}, {2, 1, 1, 0}, {0, 2, 1, 1}});

const Table kSmallTarget(3, {{1, 2, 1}, {0, 1, 1}, {2, 1, 0}, {1, 1, 1}});
const Table kSmallDraft(3, {{2, 1, 1}, {1, 1, 0}, {1, 1, 1}, {0, 2, 1}});

TEST(VerdictTest, OneLevelHasTheTargetsDistribution) {
  ExpectEqual(Outputs(Verified(kTarget, Alone(kDraft), 1), 3),
              Outputs(Plain(kTarget), 3));
  ExpectEqual(Outputs(Verified(kTarget, Alone(kDraft), 2), 4),
              Outputs(Plain(kTarget), 4));
  // An output must be longer than a block, or it would not show the token
  // after.
  ExpectEqual(Outputs(Verified(kSmallTarget, Alone(kSmallDraft), 3), 4),
              Outputs(Plain(kSmallTarget), 4));
}

TEST(VerdictTest, TwoLevelsHaveTheTargetsDistribution) {
  const Drafter middle = Verifying(kMiddle, Alone(kDraft), 1);
  ExpectEqual(Outputs(Verified(kTarget, middle, 2), 3),
              Outputs(Plain(kTarget), 3));
  // If the middle equals the target the upper level rejects nothing, so the
  // bias of a wrong replacement below would come out whole.
  const Drafter same = Verifying(kTarget, Alone(kDraft), 1);
  ExpectEqual(Outputs(Verified(kTarget, same, 2), 3),
              Outputs(Plain(kTarget), 3));
}

TEST(VerdictTest, DisjointDistributionsAreAlwaysReplaced) {
  const Table a(4, {{1, 1, 0, 0}});
  const Table b(4, {{0, 0, 1, 3}});
  ExpectEqual(Outputs(Verified(b, Alone(a), 3), 3), Outputs(Plain(b), 3));
  ExpectEqual(Outputs(Verified(a, Alone(b), 3), 3), Outputs(Plain(a), 3));
}

TEST(VerdictTest, ADraftThatIsCertain) {
  const Table lookup(4, {{0, 0, 1, 0}, {0, 1, 0, 0}, {1, 0, 0, 0}});
  ExpectEqual(Outputs(Verified(kTarget, Alone(lookup), 3), 4),
              Outputs(Plain(kTarget), 4));
}

// The length depends on what was drafted, as an adaptive one may: the token
// that decided it stays in the block.
TEST(VerdictTest, LengthsMayFollowFromTokensThatStay) {
  const Drafter draft = [](Walker& walker, const Ids& before, size_t most) {
    Block block = Alone(kSmallDraft)(walker, before, 1);
    const size_t more = block.tokens[0] % 2 == 0 ? most - 1 : 0;
    const Block rest =
        Alone(kSmallDraft)(walker, Joined(before, block.tokens), more);
    block.tokens = Joined(block.tokens, rest.tokens);
    block.distributions.insert(block.distributions.end(),
                               rest.distributions.begin(),
                               rest.distributions.end());
    return block;
  };
  ExpectEqual(Outputs(Verified(kSmallTarget, draft, 3), 4),
              Outputs(Plain(kSmallTarget), 4));
}

// Adds branches of `length` tokens in the places that `places` gives for a
// block, each drawn without the block's token there.
Drafter Branching(const Table& model, size_t length,
                  std::function<std::vector<size_t>(const Block&)> places) {
  return [&model, length, places = std::move(places)](
             Walker& walker, const Ids& before, size_t most) {
    Block block = Alone(model)(walker, before, most);
    for (const size_t at : places(block)) {
      const ExactDistribution others =
          WithoutToken(block.distributions[at], block.tokens[at]);
      if (others.ids.empty()) continue;
      Block::Branching branch = {at, {walker.Draw(others, at)}, {others}};
      const Block rest = Alone(model)(
          walker,
          Joined(Joined(before, First(block.tokens, at)), branch.tokens),
          length - 1);
      branch.tokens = Joined(branch.tokens, rest.tokens);
      branch.distributions.insert(branch.distributions.end(),
                                  rest.distributions.begin(),
                                  rest.distributions.end());
      block.branches.push_back(branch);
    }
    return block;
  };
}

TEST(VerdictTest, BranchesHaveTheTargetsDistribution) {
  using Places = std::function<std::vector<size_t>(const Block&)>;
  const Places first = [](const Block&) { return std::vector<size_t>{0}; };
  const Places both = [](const Block&) { return std::vector<size_t>{1, 0}; };
  // Places may follow from the block's own tokens.
  const Places by_last = [](const Block& block) {
    return std::vector<size_t>{block.tokens.back() % 2 == 0 ? 0u : 1u};
  };
  ExpectEqual(Outputs(Verified(kTarget, Branching(kDraft, 1, first), 1), 2),
              Outputs(Plain(kTarget), 2));
  ExpectEqual(
      Outputs(Verified(kSmallTarget, Branching(kSmallDraft, 2, first), 1), 4),
      Outputs(Plain(kSmallTarget), 4));
  for (const Places& places : {both, by_last}) {
    ExpectEqual(
        Outputs(Verified(kSmallTarget, Branching(kSmallDraft, 1, places), 2),
                3),
        Outputs(Plain(kSmallTarget), 3));
  }
}

// A mask of the whole text before a token is a part of the target, whether the
// drafts heed it or not. Some texts end where it allows nothing.
TEST(VerdictTest, AMaskedTargetHasItsDistribution) {
  const Table::Mask mask = [](const Ids& before, int32_t id) {
    int32_t sum = id;
    for (const int32_t token : before) sum += token + 1;
    const bool dead = before == Ids{1} || before == Ids{0, 2};
    return !dead && sum % 3 != 2;
  };
  const Table target(kTarget, mask);
  const Table draft(kDraft, mask);
  const Table middle(kMiddle, mask);
  const Distribution want = Outputs(Plain(target), 3);
  EXPECT_TRUE(want.count({1, kNoToken, kNoToken}));
  EXPECT_TRUE(want.count({0, 2, kNoToken}));
  for (const Table& drafts : {draft, kDraft}) {
    for (size_t gamma : {1, 2, 3}) {
      ExpectEqual(Outputs(Verified(target, Alone(drafts), gamma), 3), want);
    }
    ExpectEqual(
        Outputs(Verified(target, Verifying(middle, Alone(drafts), 1), 2), 3),
        want);
  }
  const auto first = [](const Block& block) {
    return std::vector<size_t>(block.tokens.empty() ? 0 : 1, 0);
  };
  ExpectEqual(Outputs(Verified(target, Branching(draft, 2, first), 2), 3),
              want);
}

// A second choice that is a lookup's, where the first was drawn from it too.
TEST(VerdictTest, ADraftThatIsCertainHasNoSecondChoice) {
  const Table lookup(4, {{0, 0, 1, 0}, {0, 1, 0, 0}, {1, 0, 0, 0}});
  EXPECT_TRUE(WithoutToken(lookup.After({0, 0}), 2).ids.empty());
  const ExactDistribution rest = WithoutToken(kTarget.After({0, 0}), 1);
  EXPECT_EQ(rest.ids, (Ids{0, 2}));
  EXPECT_TRUE(rest.probabilities[0] == Rational(int64_t{1}, int64_t{2}));
}

TEST(VerdictTest, AcceptanceIsTheCommonPart) {
  const ExactDistribution p = kTarget.After({0, 1});
  const ExactDistribution q = kDraft.After({0, 1});
  Rational accepted(0);
  Rational common(0);
  for (size_t i = 0; i < q.ids.size(); ++i) {
    accepted = accepted + q.probabilities[i] * AcceptanceOf(p, q, q.ids[i]);
    const Rational other = ProbabilityOf(p, q.ids[i]);
    common = common + (other < q.probabilities[i] ? other : q.probabilities[i]);
  }
  EXPECT_TRUE(accepted == common);
  EXPECT_TRUE(Rational(0) < common);
  EXPECT_TRUE(common < Rational(1));
}

TEST(VerdictTest, ResidualsOfRoundingAreTheTarget) {
  struct {
    Ids ids;
    std::vector<float> probabilities;
  } p = {{3, 5}, {0.5f, 0.5f}};
  auto q = p;
  EXPECT_EQ(ResidualOf(p, q).probabilities, p.probabilities);
  q.probabilities = {0.5000001f, 0.5000001f};
  EXPECT_EQ(ResidualOf(p, q).ids, p.ids);
  q.probabilities = {0.75f, 0.25f};
  EXPECT_EQ(ResidualOf(p, q).ids, Ids{5});
  EXPECT_EQ(ResidualOf(p, q).probabilities, std::vector<float>{1.0f});
}

// Draws that depend on the position alone, as shared noise does.
struct Fixed {
  Ids draws;
  int32_t Draw(const ExactDistribution& distribution, size_t i) {
    EXPECT_LT(i, draws.size());
    EXPECT_THAT(distribution.ids, testing::Contains(draws[i]));
    return draws[i];
  }
};

TEST(VerdictTest, CoupledIsWhatTheTargetDraws) {
  const Table any(4, {{1, 1, 1, 1}});
  const Ids draws = {2, 0, 3, 1};
  for (const auto& [drafted, accepted] :
       std::vector<std::pair<Ids, size_t>>{{{}, 0},
                                           {{2}, 1},
                                           {{1, 0, 3}, 0},
                                           {{2, 0, 1}, 2},
                                           {{2, 1, 3}, 1},
                                           {{2, 0, 3}, 3}}) {
    Fixed chance{draws};
    const auto targets = Targets(any, {}, drafted);
    const Chain<ExactDistribution> chain = {drafted, {}, targets};
    const Verdict verdict = JudgeCoupled(chain, {}, chance);
    EXPECT_EQ(verdict.accepted, accepted) << testing::PrintToString(drafted);
    EXPECT_EQ(verdict.next, draws[accepted]);
    EXPECT_EQ(verdict.branch, -1);
  }
}

// The walk leaves the block where the target draws a branch's first token.
TEST(VerdictTest, CoupledFollowsTheBranchThatTheTargetDraws) {
  const Table any(4, {{1, 1, 1, 1}});
  const Ids draws = {2, 0, 3, 1, 1};
  struct Case {
    Ids block;
    size_t at;
    Ids branch;
    Verdict want;
  };
  for (const Case& c : std::vector<Case>{
           {{2, 1, 3}, 1, {0, 3}, {1, 1, 0, 2}},   // all of it holds
           {{2, 1, 3}, 1, {0, 2}, {1, 3, 0, 1}},   // its first token does
           {{2, 1, 3}, 1, {3, 3}, {1, 0, -1, 0}},  // another one
           {{2, 1, 3}, 0, {0, 3}, {1, 0, -1, 0}},  // in another place
           {{1, 1, 3}, 0, {2, 0, 3}, {0, 1, 0, 3}}}) {
    Fixed chance{draws};
    const auto targets = Targets(any, {}, c.block);
    auto behind = Targets(any, {}, c.branch);
    behind.erase(behind.begin());
    const Chain<ExactDistribution> chain = {c.block, {}, targets};
    const std::vector<ExactDistribution> drawn;
    const Verdict verdict =
        JudgeCoupled(chain, {{c.at, {c.branch, drawn, behind}}}, chance);
    EXPECT_EQ(verdict.accepted, c.want.accepted);
    EXPECT_EQ(verdict.next, c.want.next);
    EXPECT_EQ(verdict.branch, c.want.branch);
    EXPECT_EQ(verdict.of_branch, c.want.of_branch);
  }
}

}  // namespace
}  // namespace tiercel::verdict_test
