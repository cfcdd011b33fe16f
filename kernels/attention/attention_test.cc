#include "kernels/attention/attention.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/attention/attention_gpu.h"
#include "kernels/attention/testing.h"
#include "kernels/kv/kv_row.h"
#include "kernels/kv/testing.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

bool AllFinite(const std::vector<float>& values) {
  for (float x : values) {
    if (!std::isfinite(x)) return false;
  }
  return true;
}

// Rows at both ends of pages, over one page and several, and over positions
// that begin inside of a page.
struct Place {
  int64_t begin;
  int64_t position;
};
std::vector<Place> Places() {
  constexpr int64_t kFar = 120007;
  std::vector<Place> places;
  for (int64_t position : {0, kPageTokens - 1, kPageTokens, kPageTokens + 1}) {
    places.push_back({0, position});
  }
  places.push_back({5, 5});
  places.push_back({5, 3 * kPageTokens - 1});
  places.push_back({kFar, kFar});
  places.push_back({kFar, kFar + 2 * kPageTokens});
  return places;
}

// All shapes, or a few.
std::vector<Case> Shapes(bool few) {
  std::vector<Case> shapes;
  const auto add = [&](int heads, int kv_heads, int head_dim) {
    Case c;
    c.heads = heads;
    c.kv_heads = kv_heads;
    c.head_dim = head_dim;
    shapes.push_back(c);
  };
  if (few) {
    add(1, 1, 8);
    add(4, 4, 40);
    add(9, 3, 48);
    add(8, 1, 128);
    return shapes;
  }
  for (auto [heads, kv_heads] : {std::pair(1, 1), {4, 4}, {9, 3}, {8, 1}}) {
    for (int head_dim : {8, 40, 48, 64, 128}) add(heads, kv_heads, head_dim);
  }
  return shapes;
}

// Pairs of types. If `few`, each type is once that of K and once that of V,
// which is enough for a sanitizer, as K and V are read independently.
std::vector<std::pair<DType, DType>> KvTypePairs(int head_dim, bool few) {
  const std::vector<DType> types = KvTypes(head_dim);
  std::vector<std::pair<DType, DType>> pairs;
  for (size_t k = 0; k < types.size(); ++k) {
    for (size_t v = 0; v < types.size(); ++v) {
      // GPUs have kernels of their own for these types of both.
      const bool one =
          k == v && (types[k] == DType::kF16 || types[k] == DType::kQ8_0 ||
                     types[k] == DType::kQ4_0);
      if (few && !one && v != (k + 1) % types.size()) continue;
      pairs.emplace_back(types[k], types[v]);
    }
  }
  return pairs;
}

// head_dim is 8, so that the numbers can be checked by hand. Scores are
// 2 * (1, 2) * 0.5 = 1 and 2, and weights e^-1 and 1.
TEST(AttentionTest, HandWorked) {
  for (DeviceKind device : {DeviceKind::kRef, DeviceKind::kCpu}) {
    Case c;
    c.position = 1;
    Problem problem(c);
    std::fill_n(problem.Query(0), 8, 0.0f);
    problem.Query(0)[0] = 2.0f;
    const float k0[8] = {1.0f}, k1[8] = {2.0f};
    const float v0[8] = {10.0f, 1.0f}, v1[8] = {20.0f, -1.0f};
    KvRowFromF32(DType::kF32, k0, 8, problem.K(0, 0));
    KvRowFromF32(DType::kF32, k1, 8, problem.K(1, 0));
    KvRowFromF32(DType::kF32, v0, 8, problem.V(0, 0));
    KvRowFromF32(DType::kF32, v1, 8, problem.V(1, 0));
    AttentionParams p = problem.Params();
    p.scale = 0.5f;
    std::vector<float> out(8, kPoison);
    p.out = InPlace(out.data());
    ASSERT_TRUE(Attention(*MakeStream(device, 1), p).ok());
    EXPECT_NEAR(out[0], 17.310586, 1e-5);    // (10 / e + 20) / (1 / e + 1)
    EXPECT_NEAR(out[1], -0.46211716, 1e-6);  // (1 / e - 1) / (1 / e + 1)
    for (size_t d = 2; d < 8; ++d) EXPECT_EQ(out[d], 0.0f);
  }
}

TEST(AttentionTest, ReferenceIsSoftmaxAttention) {
  const std::unique_ptr<Stream> ref = MakeStream(DeviceKind::kRef, 1);
  for (Case c : Shapes(TriesLess())) {
    for (Place place : Places()) {
      c.begin = place.begin;
      c.position = place.position;
      c.rows = 2;
      Problem problem(c);
      ExpectNearSoftmax(problem, problem.Run(*ref));
    }
  }
}

TEST(AttentionTest, ReferenceReadsEveryKvType) {
  const std::unique_ptr<Stream> ref = MakeStream(DeviceKind::kRef, 1);
  for (auto [type_k, type_v] : KvTypePairs(64, TriesLess())) {
    Problem problem({4, 2, 64, type_k, type_v, 3, kPageTokens + 9, 3});
    ExpectNearSoftmax(problem, problem.Run(*ref));
  }
}

class AttentionBackendTest : public BackendTest {
 protected:
  // Expects the reference's bits, if Fma rounds once; else nearly its results.
  void ExpectIsReference(Problem& problem, const std::vector<float>& out) {
    if (!HasFma()) {
      ExpectNearSoftmax(problem, out);
    } else {
      EXPECT_TRUE(SameBits(out, Expected(problem))) << NameOfCase(problem.c());
    }
  }
  // The reference's results, computed once for all backends. The KV of the
  // problem must be that of its case.
  const std::vector<float>& Expected(const Problem& problem) {
    static std::map<std::pair<std::string, std::vector<float>>,
                    std::vector<float>>
        known;
    std::vector<float>& out = known[{NameOfCase(problem.c()), problem.q()}];
    if (out.empty()) out = problem.Run(*ref_);
    return out;
  }

  std::unique_ptr<Stream> ref_ = MakeStream(DeviceKind::kRef, 1);
};

INSTANTIATE_TEST_SUITE_P(Backends, AttentionBackendTest,
                         testing::ValuesIn(AttentionBackends()), NameOfBackend);

TEST_P(AttentionBackendTest, EqualsReferenceForEveryShapeAndPlace) {
  const std::unique_ptr<Stream> fast = NewStream(2);
  for (Case c : Shapes(TriesFew())) {
    for (Place place : Places()) {
      for (int64_t rows : Fewer(InShort({1, 2, 7}, {1, 7}), {7})) {
        c.begin = place.begin;
        c.position = place.position;
        c.rows = rows;
        Problem problem(c);
        ExpectIsReference(problem, problem.Run(*fast));
      }
    }
  }
}

TEST_P(AttentionBackendTest, EqualsReferenceForEveryKvType) {
  const std::unique_ptr<Stream> fast = NewStream(1);
  for (int head_dim : {40, 64, 96}) {
    for (auto [type_k, type_v] :
         KvTypePairs(head_dim, TriesFew() || (head_dim != 64 && !TriesAll()))) {
      Problem problem({6, 2, head_dim, type_k, type_v, 21, kPageTokens + 9, 5});
      ExpectIsReference(problem, problem.Run(*fast));
    }
  }
}

// GPUs have kernels for 1, 2, 4, 6 and 8 queries a warp, which read 128
// elements of a head at a time.
TEST_P(AttentionBackendTest, FewQueriesOfLongRowsOfEveryKvType) {
  const std::unique_ptr<Stream> fast = NewStream(1);
  for (int heads : {1, 3, 5, 17}) {
    for (int head_dim : {128, 288}) {
      for (auto [type_k, type_v] : KvTypePairs(head_dim, !TriesAll())) {
        Problem problem(
            {heads, 1, head_dim, type_k, type_v, 21, kPageTokens + 41, 1});
        ExpectIsReference(problem, problem.Run(*fast));
      }
    }
  }
}

TEST_P(AttentionBackendTest, EveryNumberOfQueriesInATile) {
  const std::unique_ptr<Stream> fast = NewStream(1);
  for (int heads = 1; heads <= 17; ++heads) {
    if (TriesFew() && heads != 1 && heads != 3 && heads % 8 != 1) continue;
    for (int head_dim : {8, 72, 80, 256}) {
      Problem problem(
          {heads, 1, head_dim, DType::kF16, DType::kF16, 0, 150, 1});
      ExpectIsReference(problem, problem.Run(*fast));
    }
  }
}

// The fold has more pages than a warp has lanes, or than a block has threads.
TEST_P(AttentionBackendTest, ManyPages) {
  const std::unique_ptr<Stream> fast = NewStream(2);
  for (int64_t pages : {33, 131}) {
    Problem problem(
        {1, 1, 8, DType::kF16, DType::kF16, 0, pages * kPageTokens - 5, 1});
    ExpectIsReference(problem, problem.Run(*fast));
  }
}

// Row invariance: a row's bits depend neither on the other rows of the call nor
// on the number of threads.
TEST_P(AttentionBackendTest, RowsDoNotDependOnOtherRowsOrThreads) {
  if (TriesFew() && GetParam().isa != AttentionIsas().back()) GTEST_SKIP();
  std::vector<std::unique_ptr<Stream>> streams;
  for (int threads : Threads({1, 2, 3})) {
    streams.push_back(NewStream(threads));
  }
  for (Case c : {Case{9, 3, 64, DType::kF16, DType::kF16, 5, 300, 64},
                 Case{4, 4, 40, DType::kBF16, DType::kF32, 0, 0, 64},
                 Case{8, 1, 32, DType::kQ8_0, DType::kQ8_0, 130, 250, 200}}) {
    const Problem problem(c);
    const std::vector<float> all = problem.Run(*streams[0]);
    for (const auto& stream : streams) {
      EXPECT_TRUE(SameBits(problem.Run(*stream), all)) << NameOfCase(c);
      const int64_t row_floats = int64_t{c.heads} * c.head_dim;
      for (int64_t step : Fewer(InShort({1, 7, 33}, {1, 33}), {33})) {
        for (int64_t row = 0; row < c.rows; row += step) {
          const int64_t rows = std::min(step, c.rows - row);
          const std::vector<float> some = problem.Run(*stream, row, rows);
          EXPECT_EQ(std::memcmp(some.data(), all.data() + row * row_floats,
                                some.size() * sizeof(float)),
                    0)
              << NameOfCase(c) << ": rows from " << row << " by " << step;
        }
      }
    }
  }
}

// There are enough rows and pages for several blocks of rows and several waves
// of pages.
TEST_P(AttentionBackendTest, WavesDoNotShow) {
  if (GetParam().device != DeviceKind::kCpu) return;  // has waves of its own
  if (TriesFew() && GetParam().isa != AttentionIsas().back()) GTEST_SKIP();
  const std::unique_ptr<Stream> fast = NewStream(2);
  const Case c = {64, 1, 128, DType::kF16, DType::kF16, 0, 1300, 40};
  const Problem problem(c);
  const std::vector<float> all = problem.Run(*fast);
  const int64_t row_floats = int64_t{c.heads} * c.head_dim;
  for (int64_t row : {0, 30, 39}) {
    const std::vector<float> one = problem.Run(*fast, row, 1);
    EXPECT_EQ(std::memcmp(one.data(), all.data() + row * row_floats,
                          one.size() * sizeof(float)),
              0)
        << row;
  }
}

// A GPU's waves hold more than a test has, so they are made small here: several
// rows over some pages, with fewer in the last wave, and one row over one page.
TEST_P(AttentionBackendTest, WavesOfAGpuDoNotShow) {
  if (GetParam().device != DeviceKind::kCuda) return;
  const std::unique_ptr<Stream> gpu = NewStream();
  Case c = {4, 2, 40, DType::kF16, DType::kF32, 5, 2600, 7};
  for (const int64_t waves : {1, 5000}) {
    for (const bool views : {false, true}) {
      if (views) c.views = {{{{130, 140}, {600, 610}}, 70}, {{}, 2000}};
      const Problem problem(c);
      const auto in_waves = [&](Stream& stream, const AttentionParams& p) {
        return AttendOnGpu(stream, p, waves);
      };
      EXPECT_TRUE(
          SameBits(problem.Run(*gpu, 0, c.rows, in_waves), problem.Run(*ref_)))
          << waves << " floats";
    }
  }
  // The list of 69 pages is sent, as a launch has room for fewer.
  const Problem is_long({2, 1, 8, DType::kF16, DType::kF16, 5, 8740, 2});
  EXPECT_TRUE(SameBits(
      is_long.Run(*gpu, 0, 2,
                  [&](Stream& stream, const AttentionParams& p) {
                    return AttendOnGpu(stream, p, /*wave_floats=*/1000);
                  }),
      is_long.Run(*ref_)));
}

// If there are many rows, a GPU computes no waves: each tile of rows goes over
// all pages that they see, and folds them.
TEST_P(AttentionBackendTest, FoldingTilesOfAGpuDoNotShow) {
  if (GetParam().device != DeviceKind::kCuda) return;
  const std::unique_ptr<Stream> gpu = NewStream();
  const auto folding = [](Stream& stream, const AttentionParams& p) {
    return AttendOnGpu(stream, p, kGpuWaveFloats, /*folding_tiles=*/1);
  };
  std::vector<Case> cases = {
      {4, 2, 40, DType::kF16, DType::kF16, 5, 240, 71},
      {9, 3, 128, DType::kQ8_0, DType::kQ8_0, 0, 100, 40},
      {3, 3, 288, DType::kBF16, DType::kF32, 130, 380, 9},
      {1, 1, 8, DType::kF16, DType::kF16, 0, 400, 1}};
  cases.push_back(cases[0]);
  cases.back().views = {{{{20, 40}, {140, 141}}, 3}, {{{130, 131}}, 20}};
  for (const Case& c : cases) {
    Problem problem(c);
    EXPECT_TRUE(
        SameBits(problem.Run(*gpu, 0, c.rows, folding), problem.Run(*ref_)))
        << NameOfCase(c);
    problem.Query(0)[3] = kPoison;
    EXPECT_TRUE(std::isnan(problem.Run(*gpu, 0, c.rows, folding)[0]));
  }
}

// Computes a problem in parts of its pages: each [first, end) of `bounds` on
// the stream of the same number.
std::vector<float> RunInParts(const Problem& problem,
                              const std::vector<int64_t>& bounds,
                              const std::vector<Stream*>& streams) {
  const AttentionParams all = problem.Params();
  const auto queries = static_cast<size_t>(all.rows * all.heads);
  std::vector<float> out(queries * static_cast<size_t>(all.layout.head_dim),
                         kPoison);
  std::vector<float> max(queries, kPoison);
  std::vector<float> sum(queries, kPoison);
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    Stream& stream = *streams[i];
    OnDevice<float> out_there(stream, out);
    OnDevice<float> max_there(stream, max);
    OnDevice<float> sum_there(stream, sum);
    const auto part = [&](Stream& s, AttentionParams p) {
      p.out = out_there.data();
      p.part = {bounds[i], bounds[i + 1], max_there.data(), sum_there.data()};
      // No other page is read.
      std::vector<DevicePtr<std::byte>> pages(static_cast<size_t>(p.num_pages),
                                              nullptr);
      for (int64_t page = bounds[i];
           page < std::min(bounds[i + 1], p.first_page + p.num_pages); ++page) {
        const auto at = static_cast<size_t>(page - p.first_page);
        pages[at] = p.pages[at];
      }
      p.pages = pages.data();
      const absl::Status status = Attention(s, p);
      return status.ok() ? s.Synchronize() : status;
    };
    (void)problem.Run(stream, 0, all.rows, part);
    out = out_there.Read();
    max = max_there.Read();
    sum = sum_there.Read();
  }
  return out;
}

TEST_P(AttentionBackendTest, PartsOnAnyDevicesAreOneCall) {
  const std::unique_ptr<Stream> fast = NewStream(2);
  const std::unique_ptr<Stream> cpu = MakeStream(DeviceKind::kCpu, 2);
  constexpr int64_t kEnd = AttentionPart::kToTheEnd;
  std::vector<Case> cases = {
      {4, 2, 40, DType::kF16, DType::kF16, 5, 5 * kPageTokens - 2, 17},
      {2, 2, 128, DType::kQ8_0, DType::kQ4_0, 0, 5 * kPageTokens, 1}};
  if (!TriesFew()) {  // several blocks of rows
    cases.push_back(
        {64, 1, 128, DType::kF16, DType::kF16, 3, 4 * kPageTokens, 40});
  }
  for (const Case& c : cases) {
    Problem problem(c);
    const std::vector<float>& whole = Expected(problem);
    const auto expect_whole = [&](const std::vector<int64_t>& bounds,
                                  const std::vector<Stream*>& streams) {
      EXPECT_TRUE(SameBits(RunInParts(problem, bounds, streams), whole))
          << NameOfCase(c) << ", " << bounds.size() - 1 << " parts";
    };
    Stream* const f = fast.get();
    expect_whole({0, kEnd}, {f});
    expect_whole({0, 1, 2, 4, kEnd}, {f, cpu.get(), ref_.get(), f});
    expect_whole({0, 3, kEnd}, {cpu.get(), f});
    expect_whole({0, 3, 4, kEnd}, {f, f, cpu.get()});
  }
}

TEST(AttentionTest, RefusesPartsThatAreNone) {
  const std::unique_ptr<Stream> stream = MakeStream(DeviceKind::kCpu, 1);
  Problem problem({4, 2, 40, DType::kF16, DType::kF16, 130, 400, 3});
  std::vector<float> out(3 * 160, kPoison);
  std::vector<float> state(24, kPoison);
  const std::vector<HeadView> views(2);
  const auto code_of = [&](int64_t first, int64_t end, auto change) {
    AttentionParams p = problem.Params();
    p.out = InPlace(out.data());
    p.part = {first, end, InPlace(state.data()), InPlace(&state[12])};
    change(p);
    return CodeOf(Attention(*stream, p));
  };
  const auto as_is = [](AttentionParams&) {};
  EXPECT_EQ(code_of(0, 2, as_is), "invalid_position");
  EXPECT_EQ(code_of(4, AttentionPart::kToTheEnd, as_is), "invalid_position");
  EXPECT_EQ(code_of(1, 4, as_is), "invalid_position");
  EXPECT_EQ(code_of(2, 2, as_is), "invalid_position");
  EXPECT_EQ(code_of(1, 2, [](auto& p) { p.part.sum = nullptr; }),
            "invalid_position");
  EXPECT_EQ(code_of(1, 2, [&](auto& p) { p.view = views.data(); }),
            "invalid_position");
  for (float x : out) EXPECT_TRUE(std::isnan(x));
  AttentionParams p = problem.Params();
  p.out = InPlace(out.data());
  p.part = {1, 3, InPlace(state.data()), InPlace(&state[12])};
  EXPECT_TRUE(Attention(*stream, p).ok());
}

// A fault at a position after a row's own does not reach the row, even within
// the same group of 16 positions. Rows from the fault's position on do get it.
TEST_P(AttentionBackendTest, FaultsReachOnlyRowsThatSeeThem) {
  const std::unique_ptr<Stream> fast = NewStream(2);
  const Case c = {4, 2, 40, DType::kF32, DType::kF32, 3, kPageTokens - 9, 20};
  for (float fault : {kPoison, kInf, -kInf}) {
    for (bool in_k : {true, false}) {
      for (int64_t bad : {c.position + 2, c.position + 9, c.position + 15}) {
        Problem problem(c);
        const std::vector<float> clean = problem.Run(*fast);
        // In K one element has the fault. The score is -inf for some queries,
        // and must not count as a weight of zero.
        std::vector<float> row(40, in_k ? 0.25f : fault);
        row[7] = fault;
        for (int head = 0; head < c.kv_heads; ++head) {
          KvRowFromF32(DType::kF32, row.data(), 40,
                       in_k ? problem.K(bad, head) : problem.V(bad, head));
        }
        const std::vector<float> out = problem.Run(*fast);
        const auto first = static_cast<size_t>((bad - c.position) * 4 * 40);
        for (size_t i = 0; i < out.size(); ++i) {
          if (i < first) {
            ASSERT_EQ(out[i], clean[i]) << bad << " " << i;
          } else {
            ASSERT_FALSE(std::isfinite(out[i])) << bad << " " << i;
          }
        }
      }
    }
  }
}

TEST_P(AttentionBackendTest, FaultInAQueryStaysInItsHead) {
  const std::unique_ptr<Stream> fast = NewStream(2);
  for (float fault : {kPoison, kInf, -kInf}) {
    Problem problem({4, 2, 40, DType::kF16, DType::kF16, 0, 200, 3});
    const std::vector<float> clean = problem.Run(*fast);
    problem.Query(1)[2 * 40 + 17] = fault;
    const std::vector<float> out = problem.Run(*fast);
    for (size_t i = 0; i < out.size(); ++i) {
      if (i / 40 == 1 * 4 + 2) {
        ASSERT_FALSE(std::isfinite(out[i])) << i;
      } else {
        ASSERT_EQ(out[i], clean[i]) << i;
      }
    }
  }
}

TEST_P(AttentionBackendTest, LargeScoresDoNotOverflow) {
  const std::unique_ptr<Stream> fast = NewStream(1);
  Problem problem({1, 1, 64, DType::kF32, DType::kF32, 0, 400, 1});
  for (int d = 0; d < 64; ++d) problem.Query(0)[d] *= 1e4f;
  const std::vector<float> out = problem.Run(*fast);
  EXPECT_TRUE(AllFinite(out));
  ExpectIsReference(problem, out);
}

TEST(AttentionTest, NoRowsWriteNothing) {
  for (DeviceKind device : {DeviceKind::kRef, DeviceKind::kCpu}) {
    Case c;
    c.rows = 0;
    Problem problem(c);
    EXPECT_TRUE(problem.Run(*MakeStream(device, 2)).empty());
  }
}

TEST(AttentionTest, RefusesWhatItCannotRead) {
  const std::unique_ptr<Stream> stream = MakeStream(DeviceKind::kCpu, 1);
  Problem problem({4, 2, 40, DType::kF16, DType::kF16, 5, 200, 3});
  std::vector<float> out(3 * 160, kPoison);
  const auto code_of = [&](auto change) {
    AttentionParams p = problem.Params();
    p.out = InPlace(out.data());
    change(p);
    return CodeOf(Attention(*stream, p));
  };
  EXPECT_EQ(code_of([](auto& p) { p.rows = -1; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.heads = 3; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.heads = 0; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.layout.kv_heads = 0; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.layout.head_dim = 0; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.layout.head_dim = 36; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.q_stride = 159; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.layout.type_k = DType::kQ8_0; }),
            "invalid_kv_type");
  EXPECT_EQ(code_of([](auto& p) { p.layout.type_v = DType::kQ4_0; }),
            "invalid_kv_type");
  EXPECT_EQ(code_of([](auto& p) { p.begin = -1; }), "invalid_position");
  EXPECT_EQ(code_of([](auto& p) { p.begin = 201; }), "invalid_position");
  EXPECT_EQ(code_of([](auto& p) { p.first_page = 1; }), "invalid_position");
  EXPECT_EQ(code_of([](auto& p) { p.num_pages = 1; }), "invalid_position");
  std::vector<DevicePtr<std::byte>> pages = {InPlace(problem.K(5, 0)), nullptr};
  EXPECT_EQ(code_of([&](auto& p) { p.pages = pages.data(); }),
            "invalid_position");
  pages[1] = InPlace(problem.K(128, 0)) + 8;
  EXPECT_EQ(code_of([&](auto& p) { p.pages = pages.data(); }), "invalid_page");
  AttentionParams p = problem.Params();
  p.out = InPlace(out.data());
  p.pages = pages.data();
  EXPECT_EQ(Attention(*stream, p).message(),
            "Attention: page 1 begins 8 bytes past a multiple of 16; need all "
            "pages to begin at one");
  for (float x : out) EXPECT_TRUE(std::isnan(x));
}

}  // namespace
}  // namespace tiercel
