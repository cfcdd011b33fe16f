#include "kernels/select/selector.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/number/half.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"
#include "tests/setup/draws.h"

namespace tiercel::selector_test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr uint16_t kPoisonF16 = 0x7e00;  // NaN
constexpr int32_t kUnwritten = -77;

using Doubles = std::vector<double>;

// The importance of a few needles in a haystack. The elements between one
// head's importance or norms and the next head's are NaN.
struct Problem {
  Problem(int kv_heads, int64_t candidates, int64_t budget)
      : stride(candidates + 5),
        importance(static_cast<size_t>(kv_heads * (candidates + 3)), kPoison),
        norms(static_cast<size_t>(kv_heads * stride), kPoisonF16) {
    p = {.importance = nullptr,
         .importance_stride = candidates + 3,
         .norms = nullptr,
         .norms_stride = stride,
         .kv_heads = kv_heads,
         .candidates = candidates,
         .budget = budget,
         .most_prior = 0.25f,
         .reach = 16,
         .suppression = 1.0f,
         .exclusivity = 0.85f,
         .out = nullptr};
    std::mt19937 random(3);
    NormalFloats normal;
    for (int64_t g = 0; g < kv_heads; ++g) {
      for (int64_t j = 0; j < candidates; ++j) {
        Importance(g, j) = std::exp(1.5f * normal(random)) * 0.01f;
        SetNorm(g, j, 10.0f * std::exp(0.5f * normal(random)));
      }
    }
  }

  float& Importance(int64_t head, int64_t j) {
    return importance[static_cast<size_t>(head * p.importance_stride + j)];
  }
  float Norm(int64_t head, int64_t j) const {
    return F32FromF16(norms[static_cast<size_t>(head * stride + j)]);
  }
  void SetNorm(int64_t head, int64_t j, float norm) {
    norms[static_cast<size_t>(head * stride + j)] = F16FromF32(norm);
  }
  // Turns off the window and the competition between heads.
  void Plain() { p.suppression = p.exclusivity = 0.0f; }

  std::string Name() const {
    std::string name;
    for (int64_t n : {int64_t{p.kv_heads}, p.candidates, p.budget, p.reach}) {
      name += std::to_string(n) + " ";
    }
    for (float x : {p.most_prior, p.suppression, p.exclusivity}) {
      name += std::to_string(x) + " ";
    }
    return name;
  }

  // Returns [kv_heads, min(budget, candidates)]. There is one element more than
  // is used, so that a write past the end is noticed.
  std::vector<int32_t> Run(Stream& stream) const {
    OnDevice<float> given(stream, importance);
    OnDevice<uint16_t> lengths(stream, norms);
    OnDevice<int32_t> chosen(
        stream,
        std::vector<int32_t>(
            static_cast<size_t>(p.kv_heads * std::min(p.budget, p.candidates)) +
                1,
            kUnwritten));
    SelectParams run = p;
    run.importance = given.data();
    run.norms = lengths.data();
    run.out = chosen.data();
    const absl::Status status = Select(stream, run);
    EXPECT_TRUE(status.ok()) << status;
    std::vector<int32_t> out = chosen.Read();
    EXPECT_EQ(out.back(), kUnwritten);
    out.pop_back();
    return out;
  }

  int64_t stride;
  std::vector<float> importance;
  std::vector<uint16_t> norms;
  SelectParams p{};
};

void Normalise(Doubles& x) {
  double sum = 0;
  for (double y : x) sum += y;
  for (double& y : x) y /= sum;
}

// The paper's formulas follow in double.
Doubles Shares(Problem& problem, int64_t head) {
  Doubles f;
  for (int64_t j = 0; j < problem.p.candidates; ++j) {
    f.push_back(std::pow(problem.Importance(head, j), 2));
  }
  Normalise(f);
  return f;
}
Doubles Prior(const Problem& problem, int64_t head) {
  const double beta = -std::log(0.6) / 0.9;
  const auto last =
      static_cast<double>(std::max<int64_t>(problem.p.candidates - 1, 1));
  Doubles r;
  for (int64_t j = 0; j < problem.p.candidates; ++j) {
    const double u = static_cast<double>(j) / last;
    r.push_back(std::exp(-0.5 * std::log(problem.Norm(head, j)) +
                         0.7 * (-beta * std::pow(u, 1.8) +
                                0.4 * std::log(std::max(1 - u, 1e-12)))));
  }
  Normalise(r);
  return r;
}
double Lambda(const Doubles& f, const Doubles& r) {
  double ff = 0;
  double fr = 0;
  double rr = 0;
  for (size_t j = 0; j < f.size(); ++j) {
    ff += f[j] * f[j];
    fr += f[j] * r[j];
    rr += r[j] * r[j];
  }
  return (ff - fr) / std::max(ff - 2 * fr + rr, 1e-12);
}
Doubles LogMixture(Problem& problem, int64_t head) {
  const Doubles f = Shares(problem, head);
  const Doubles r = Prior(problem, head);
  const double lambda =
      std::clamp(Lambda(f, r), 0.0, double{problem.p.most_prior});
  Doubles l;
  for (size_t j = 0; j < f.size(); ++j) {
    l.push_back(std::log((1 - lambda) * f[j] + lambda * r[j]));
  }
  return l;
}
std::vector<Doubles> Values(Problem& problem) {
  const SelectParams& p = problem.p;
  std::vector<Doubles> t;
  for (int64_t head = 0; head < p.kv_heads; ++head) {
    const Doubles l = LogMixture(problem, head);
    t.emplace_back();
    for (int64_t j = 0; j < p.candidates; ++j) {
      double greatest = l[static_cast<size_t>(j)];
      for (int64_t i = 0; i < p.candidates; ++i) {
        if (std::abs(i - j) > p.reach) continue;
        greatest = std::max(greatest, l[static_cast<size_t>(i)]);
      }
      const double own = l[static_cast<size_t>(j)];
      t.back().push_back(own - p.suppression * (greatest - own));
    }
  }
  std::vector<Doubles> v = t;
  for (size_t j = 0; j < static_cast<size_t>(p.candidates); ++j) {
    double sum = 0;
    for (const Doubles& head : t) sum += std::exp((head[j] - t[0][j]) / 2);
    for (size_t head = 0; head < t.size(); ++head) {
      const double share = std::exp((t[head][j] - t[0][j]) / 2) / sum;
      v[head][j] += p.exclusivity * std::log(std::max(share, 1e-12));
    }
  }
  return v;
}

// Expects that every head keeps the `budget` greatest values. Values within
// 1e-5 of the least of them may be kept or not.
void ExpectGreatest(Problem& problem, const std::vector<Doubles>& values,
                    const std::vector<int32_t>& out) {
  const auto n = static_cast<size_t>(problem.p.candidates);
  const auto kept = std::min(static_cast<size_t>(problem.p.budget), n);
  ASSERT_EQ(out.size(), kept * values.size());
  if (kept == 0) return;
  for (size_t head = 0; head < values.size(); ++head) {
    const Doubles& v = values[head];
    Doubles sorted = v;
    std::sort(sorted.rbegin(), sorted.rend());
    const double least = sorted[kept - 1];
    const double tie = 1e-5 * std::fabs(least);
    std::vector<bool> chosen(n, false);
    for (size_t i = 0; i < kept; ++i) {
      const int32_t j = out[head * kept + i];
      ASSERT_GE(j, 0) << problem.Name();
      ASSERT_LT(j, problem.p.candidates) << problem.Name();
      ASSERT_TRUE(i == 0 || out[head * kept + i - 1] < j) << problem.Name();
      chosen[static_cast<size_t>(j)] = true;
    }
    for (size_t j = 0; j < n; ++j) {
      if (std::fabs(v[j] - least) <= tie) continue;
      ASSERT_EQ(chosen[j], v[j] > least)
          << problem.Name() << ": head " << head << " candidate " << j
          << " of value " << v[j] << ", the least kept is " << least;
    }
  }
}

class SelectorBackendTest : public ThreeStreamsTest {
 protected:
  // Compares both streams with the formulas and, if Fma rounds once, with each
  // other.
  void Check(Problem& problem) {
    const std::vector<int32_t> out = problem.Run(*one_);
    const std::vector<int32_t> expected = problem.Run(*ref_);
    const std::vector<Doubles> values = Values(problem);
    ExpectGreatest(problem, values, expected);
    ExpectGreatest(problem, values, out);
    EXPECT_EQ(out, problem.Run(*three_)) << problem.Name();
    if (!HasFma()) return;
    EXPECT_EQ(out, expected) << problem.Name();
  }
  // Checks every budget, and thus the order of all candidates.
  void CheckOrder(Problem& problem) {
    for (int64_t budget = 0; budget <= problem.p.candidates + 1; ++budget) {
      problem.p.budget = budget;
      Check(problem);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, SelectorBackendTest,
                         testing::ValuesIn(FastBackends()), NameOfBackend);

TEST_P(SelectorBackendTest, EveryShape) {
  for (int64_t kv_heads : Fewer({1, 2, 3, 8}, {1, 3})) {
    for (int64_t candidates :
         Fewer({0, 1, 2, 15, 16, 17, 31, 33, 100, 255, 256, 257, 700},
               {0, 1, 17, 257})) {
      for (int64_t budget : {int64_t{0}, int64_t{1}, candidates / 4,
                             candidates - 1, candidates, candidates + 9}) {
        if (budget < 0) continue;
        Problem problem(static_cast<int>(kv_heads), candidates, budget);
        Check(problem);
      }
    }
  }
}

TEST_P(SelectorBackendTest, EveryReachAndStrength) {
  for (int64_t reach :
       Fewer({0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 40, 98, 99, 1000},
             {0, 1, 16, 98, 1000})) {
    for (float suppression : {-1.0f, -0.999f, 0.0f, 0.5f, 1.0f}) {
      for (float exclusivity : {0.0f, 0.85f}) {
        Problem problem(2, 99, 33);
        problem.p.reach = reach;
        problem.p.suppression = suppression;
        problem.p.exclusivity = exclusivity;
        Check(problem);
      }
    }
  }
}

TEST_P(SelectorBackendTest, TheWholeOrder) {
  for (float most_prior : {0.0f, 0.25f, 0.35f, 1.0f}) {
    Problem problem(3, 45, 0);
    problem.p.most_prior = most_prior;
    problem.p.reach = 2;
    CheckOrder(problem);
  }
}

// There are more candidates than one work item has, and many sums.
TEST_P(SelectorBackendTest, ManyCandidates) {
  Problem problem(2, TriesFew() ? 4099 : 5003, 500);
  Check(problem);
}

// One candidate has all the importance. The order of the others is the prior's,
// and lambda would be near 1.
TEST_P(SelectorBackendTest, ThePriorAlone) {
  for (float most_prior : {0.25f, 1.0f}) {
    Problem problem(1, 60, 0);
    problem.Plain();
    problem.p.most_prior = most_prior;
    std::fill(problem.importance.begin(), problem.importance.end(), 0.0f);
    problem.Importance(0, 17) = 0.5f;
    EXPECT_GT(Lambda(Shares(problem, 0), Prior(problem, 0)), 0.5);
    CheckOrder(problem);
  }
}

// The last candidate has the distance 0 to the end, which counts as 1e-12. Its
// norm is so small that it is in the middle of the order all the same.
TEST_P(SelectorBackendTest, TheNewestCandidate) {
  Problem problem(1, 40, 0);
  problem.Plain();
  problem.p.most_prior = 1.0f;
  std::fill(problem.importance.begin(), problem.importance.end(), 0.0f);
  problem.Importance(0, 0) = 1.0f;
  for (int64_t j = 0; j < 40; ++j) {
    problem.SetNorm(0, j, 0.05f + 0.03f * static_cast<float>(j * 7 % 40));
  }
  problem.SetNorm(0, 39, 0x1p-24f);
  const Doubles r = Prior(problem, 0);
  const auto before =
      std::count_if(r.begin(), r.end(), [&](double x) { return x > r[39]; });
  EXPECT_GT(before, 10);
  EXPECT_LT(before, 30);
  CheckOrder(problem);
}

// All candidates are about as important, so that lambda is between its bounds.
TEST_P(SelectorBackendTest, NearlyUniformImportance) {
  for (int64_t candidates : {50, 600}) {
    Problem problem(1, candidates, candidates / 3);
    for (int64_t j = 0; j < candidates; ++j) {
      problem.Importance(0, j) = 1.0f + 0.3f * std::sin(static_cast<float>(j));
      problem.SetNorm(0, j,
                      12.0f + 11.0f * std::cos(2.3f * static_cast<float>(j)));
    }
    problem.p.most_prior = 1.0f;
    const double lambda = Lambda(Shares(problem, 0), Prior(problem, 0));
    EXPECT_GT(lambda, 0.1);
    EXPECT_LT(lambda, 0.9);
    Check(problem);
    problem.Plain();
    Check(problem);
    // The prior has the same order, so that lambda would be negative.
    for (int64_t j = 0; j < candidates; ++j) {
      problem.SetNorm(0, j, std::pow(problem.Importance(0, j), -30.0f));
    }
    EXPECT_LT(Lambda(Shares(problem, 0), Prior(problem, 0)), 0);
    Check(problem);
  }
}

// The limit on lambda decides whether the prior or the importance prevails.
TEST_P(SelectorBackendTest, MostPrior) {
  for (Stream* stream : {ref_.get(), one_.get()}) {
    Problem problem(1, 4, 2);
    problem.Plain();
    problem.importance = {0.9f, 0.3f, 0.1f, 0.0f};  // f is 0.89, 0.10, 0.01, 0
    for (int64_t j = 0; j < 4; ++j) problem.SetNorm(0, j, 100.0f);
    problem.SetNorm(0, 2, 2.4e-5f);  // almost all of r
    problem.p.most_prior = 0.05f;
    EXPECT_EQ(problem.Run(*stream), (std::vector<int32_t>{0, 1}));
    problem.p.most_prior = 0.35f;
    EXPECT_EQ(problem.Run(*stream), (std::vector<int32_t>{0, 2}));
    Check(problem);
  }
}

TEST_P(SelectorBackendTest, AloneItIsTheGreatestImportance) {
  for (Stream* stream : {ref_.get(), one_.get()}) {
    Problem problem(1, 200, 20);
    problem.Plain();
    problem.p.most_prior = 0.0f;
    std::vector<int32_t> order(200);
    for (int32_t j = 0; j < 200; ++j) order[static_cast<size_t>(j)] = j;
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return problem.Importance(0, a) > problem.Importance(0, b);
    });
    order.resize(20);
    std::sort(order.begin(), order.end());
    EXPECT_EQ(problem.Run(*stream), order);
  }
}

TEST_P(SelectorBackendTest, OfEqualsTheEarliest) {
  for (Stream* stream : {ref_.get(), one_.get()}) {
    Problem problem(2, 100, 30);
    problem.Plain();
    problem.p.most_prior = 0.0f;
    std::fill(problem.importance.begin(), problem.importance.end(), 0.25f);
    problem.Importance(0, 70) = 1.0f;
    problem.Importance(1, 10) = 0.0f;
    const std::vector<int32_t> out = problem.Run(*stream);
    for (int32_t i = 0; i < 30; ++i) {
      EXPECT_EQ(out[static_cast<size_t>(i)], i == 29 ? 70 : i);
      EXPECT_EQ(out[static_cast<size_t>(30 + i)], i < 10 ? i : i + 1);
    }
  }
}

// A local maximum keeps its value. Candidates up to `reach` away from it lose
// as much again as they are behind it.
TEST_P(SelectorBackendTest, TheWindowSuppressesNeighbours) {
  for (Stream* stream : {ref_.get(), one_.get()}) {
    Problem problem(1, 64, 3);
    problem.Plain();
    problem.p.most_prior = 0.0f;
    problem.p.reach = 4;
    std::fill(problem.importance.begin(), problem.importance.end(), 1e-6f);
    problem.Importance(0, 20) = 1.0f;
    problem.Importance(0, 24) = 0.5f;   // within reach
    problem.Importance(0, 25) = 0.3f;   // within reach of 24
    problem.Importance(0, 40) = 0.28f;  // alone
    problem.Importance(0, 50) = 0.26f;
    EXPECT_EQ(problem.Run(*stream), (std::vector<int32_t>{20, 24, 25}));
    problem.p.suppression = 1.0f;
    // 24 counts as 0.25, 25 as 0.18.
    EXPECT_EQ(problem.Run(*stream), (std::vector<int32_t>{20, 40, 50}));
    problem.p.reach = 3;  // 24 is a local maximum
    EXPECT_EQ(problem.Run(*stream), (std::vector<int32_t>{20, 24, 40}));
    Check(problem);
  }
}

// Candidates within reach of a greater one are selected with it, whatever their
// own value. If the budget is too small for all of them, the greater one is
// first, then those of the greatest value.
TEST_P(SelectorBackendTest, NeighboursComeAlong) {
  for (Stream* stream : {ref_.get(), one_.get()}) {
    Problem problem(1, 64, 7);
    problem.p.suppression = -0.999f;
    problem.p.exclusivity = 0.0f;
    problem.p.most_prior = 0.0f;
    problem.p.reach = 2;
    std::fill(problem.importance.begin(), problem.importance.end(), 1e-6f);
    problem.Importance(0, 2) = 0.7f;
    problem.Importance(0, 3) = 1e-4f;
    problem.Importance(0, 30) = 1.0f;
    problem.Importance(0, 32) = 0.9f;  // beside a greater one, and so is 31
    EXPECT_EQ(problem.Run(*stream),
              (std::vector<int32_t>{28, 29, 30, 31, 32, 33, 34}));
    problem.p.budget = 9;
    EXPECT_EQ(problem.Run(*stream),
              (std::vector<int32_t>{2, 3, 28, 29, 30, 31, 32, 33, 34}));
    problem.p.budget = 1;
    EXPECT_EQ(problem.Run(*stream), std::vector<int32_t>{30});
    Check(problem);
  }
}

TEST_P(SelectorBackendTest, OneHeadHasNoRivals) {
  for (Stream* stream : {ref_.get(), one_.get()}) {
    Problem problem(1, 333, 50);
    const std::vector<int32_t> out = problem.Run(*stream);
    problem.p.exclusivity = 0.0f;
    EXPECT_EQ(problem.Run(*stream), out);
  }
}

TEST_P(SelectorBackendTest, TheHeadThatWantsACandidateMostGetsIt) {
  for (Stream* stream : {ref_.get(), one_.get()}) {
    Problem problem(2, 32, 1);
    problem.p.most_prior = 0.0f;
    problem.p.reach = 0;
    std::fill(problem.importance.begin(), problem.importance.end(), 1e-3f);
    problem.Importance(0, 5) = 1.0f;
    problem.Importance(1, 5) = 0.30f;
    problem.Importance(1, 9) = 0.29f;
    problem.p.exclusivity = 0.0f;
    EXPECT_EQ(problem.Run(*stream), (std::vector<int32_t>{5, 5}));
    problem.p.exclusivity = 0.85f;
    EXPECT_EQ(problem.Run(*stream), (std::vector<int32_t>{5, 9}));
    Check(problem);
  }
}

// A rival that is far ahead costs at most -ln 1e-12. Some rivals here are so
// far ahead, and some are not.
TEST_P(SelectorBackendTest, TheLeastShare) {
  Problem problem(2, 40, 0);
  problem.p.most_prior = 0.0f;
  problem.p.reach = 0;
  const auto fraction = [](float x) { return x - std::floor(x); };
  for (int64_t j = 0; j < 40; ++j) {
    const auto x = static_cast<float>(j);
    problem.Importance(0, j) = std::exp(-27.5f - 5.5f * fraction(0.618f * x));
    problem.Importance(1, j) = std::exp(-15.0f * fraction(0.414f * x));
  }
  problem.Importance(0, 0) = 1.0f;
  CheckOrder(problem);
}

// Importance and norms may be invalid: NaN, infinite, negative or zero.
TEST_P(SelectorBackendTest, FaultsAreNoImportance) {
  Problem problem(2, 80, 0);
  problem.Plain();
  problem.p.most_prior = 0.0f;
  Problem clean = problem;
  int64_t j = 0;
  for (float fault : {kPoison, kInf, -kInf, -1.0f, -3e38f}) {
    for (int64_t head = 0; head < 2; ++head) {
      problem.Importance(head, 7 * j + 3) = fault;
      clean.Importance(head, 7 * j + 3) = 0.0f;
      problem.SetNorm(head, 5 * j, fault == -1.0f ? 0.0f : fault);
      const bool greatest = std::isnan(fault) || fault == kInf;
      clean.SetNorm(head, 5 * j, greatest ? 65504.0f : 0x1p-24f);
    }
    ++j;
  }
  for (Stream* stream : {ref_.get(), one_.get()}) {
    for (float most_prior : {0.0f, 0.25f}) {
      for (int64_t budget : {20, 75, 77}) {
        problem.p.most_prior = clean.p.most_prior = most_prior;
        problem.p.budget = clean.p.budget = budget;
        EXPECT_EQ(problem.Run(*stream), clean.Run(*stream));
      }
    }
  }
}

// There is no importance at all, or its square is too great for a float.
TEST_P(SelectorBackendTest, ExtremeImportance) {
  for (Stream* stream : {ref_.get(), one_.get()}) {
    Problem problem(2, 80, 3);
    problem.Plain();
    std::fill(problem.importance.begin(), problem.importance.end(), kPoison);
    EXPECT_EQ(problem.Run(*stream), (std::vector<int32_t>{0, 1, 2, 0, 1, 2}));
    std::fill(problem.importance.begin(), problem.importance.end(), 1e38f);
    problem.Importance(0, 50) = problem.Importance(1, 60) = 3e38f;
    problem.p.most_prior = 0.0f;
    EXPECT_EQ(problem.Run(*stream), (std::vector<int32_t>{0, 1, 50, 0, 1, 60}));
  }
}

TEST(SelectorTest, RefusesWhatMakesNoSense) {
  const std::unique_ptr<Stream> stream = MakeStream(DeviceKind::kCpu);
  const Problem problem(2, 30, 10);
  std::vector<int32_t> out(20, kUnwritten);
  const auto code_of = [&](auto change) {
    SelectParams p = problem.p;
    p.importance = InPlace(problem.importance.data());
    p.norms = InPlace(problem.norms.data());
    p.out = InPlace(out.data());
    change(p);
    return CodeOf(Select(*stream, p));
  };
  EXPECT_EQ(code_of([](auto& p) { p.kv_heads = 0; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.candidates = -1; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) {
              p.candidates = p.norms_stride = p.importance_stride =
                  (int64_t{1} << 24) + 1;
            }),
            "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.norms_stride = 29; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.importance_stride = 29; }),
            "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.budget = -1; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.reach = -1; }), "invalid_sizes");
  for (float wrong : {-1.1f, 1.1e6f, kPoison, kInf}) {
    EXPECT_EQ(code_of([wrong](auto& p) { p.suppression = wrong; }),
              "invalid_argument");
  }
  for (float wrong : {-0.1f, 1.1e6f, kPoison, kInf}) {
    EXPECT_EQ(code_of([wrong](auto& p) { p.most_prior = wrong; }),
              "invalid_argument");
    EXPECT_EQ(code_of([wrong](auto& p) { p.exclusivity = wrong; }),
              "invalid_argument");
  }
  EXPECT_EQ(code_of([](auto& p) { p.most_prior = 1.01f; }), "invalid_argument");
  EXPECT_EQ(code_of([](auto& p) {
              p.kv_heads = 1 << 30;
              p.candidates = p.norms_stride = p.importance_stride = int64_t{1}
                                                                    << 24;
            }),
            "out_of_memory");
  for (int32_t j : out) EXPECT_EQ(j, kUnwritten);
}

}  // namespace
}  // namespace tiercel::selector_test
