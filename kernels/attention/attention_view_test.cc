// Attention under views: cells that a row does not see may be NaN, and a page
// that no row sees may be missing (testing.h makes it so in every case).

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/testing.h"
#include "lib/status/error.h"

namespace tiercel::attention_view_test {
namespace {

// Each head has different chunks, so that the use of a wrong head is noticed.
std::vector<PositionRange> Chunks(int64_t begin, int64_t end, int64_t size,
                                  unsigned seed) {
  std::mt19937 random(seed);
  std::vector<PositionRange> chunks;
  for (int64_t at = begin; at < end; at += size) {
    if (random() % 3 == 0) chunks.push_back({at, at + size});
  }
  return chunks;
}

// Views of `heads` KV heads over positions begin..end - 1, one of each kind:
// all kinds, or a few.
std::vector<std::vector<ViewCase>> Views(int heads, int64_t begin, int64_t end,
                                         bool all) {
  std::vector<std::vector<ViewCase>> views;
  for (const int64_t recent : {1, 5, 16, 127, 128, 129, 300}) {
    views.push_back({static_cast<size_t>(heads), {{}, recent}});
  }
  const auto add = [&](auto view_of) {
    views.emplace_back();
    for (int head = 0; head < heads; ++head) {
      views.back().push_back(view_of(head));
    }
  };
  // Sinks and a window
  add([&](int) { return ViewCase{{{begin, begin + 4}}, 20}; });
  add([&](int head) {
    return ViewCase{{{begin, begin + 16}}, 40 + 70 * head};
  });
  // Chunks of all sizes, up to the future of all rows
  for (const int64_t size : {1, 8, 32, 128}) {
    add([&](int head) {
      return ViewCase{Chunks(begin / size * size, end + 40, size,
                             static_cast<unsigned>(size + head)),
                      1 + 3 * head};
    });
  }
  // One range mostly before the sequence, one mostly after its end
  add([&](int head) {
    const int64_t from = std::max(end - 9 - head, begin + 1);
    return ViewCase{{{0, begin + 1}, {from, end + 1000}}, 3};
  });
  // Every other position
  add([&](int head) {
    std::vector<PositionRange> single;
    for (int64_t j = begin + head; j < end; j += 2)
      single.push_back({j, j + 1});
    return ViewCase{single, 2};
  });
  // One head that sees everything, and others that see next to nothing
  add([&](int head) {
    return ViewCase{{}, head == heads - 1 ? kAllPositions : 1};
  });
  // Touching ranges
  add([&](int) {
    return ViewCase{{{begin, begin + 3}, {begin + 3, begin + 130}}, 4};
  });
  if (all) return views;
  std::vector<std::vector<ViewCase>> few;
  for (size_t i = 1; i < views.size(); i += 3) few.push_back(views[i]);
  return few;
}

struct Place {
  int64_t begin;
  int64_t position;
};
constexpr Place kPlaces[] = {
    {0, 0},
    {0, 3 * kPageTokens - 3},
    {5, 2 * kPageTokens + 9},
    {120007, 120007 + 4 * kPageTokens},
};

TEST(AttentionViewTest, ReferenceIsSoftmaxAttentionOverTheView) {
  const std::unique_ptr<Stream> ref = MakeStream(DeviceKind::kRef, 1);
  for (const Place place : kPlaces) {
    Case c{6, 3, 8, DType::kF32, DType::kF16, place.begin, place.position, 5};
    for (auto& views :
         Views(3, place.begin, place.position + 5, !TriesLess())) {
      c.views = views;
      Problem problem(c);
      ExpectNearSoftmax(problem, problem.Run(*ref));
    }
  }
}

class AttentionViewBackendTest : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (!IsSkipped()) fast_ = NewStream(2);
  }

  void ExpectIsReference(Problem& problem, const std::vector<float>& out) {
    if (!HasFma()) {
      ExpectNearSoftmax(problem, out);
    } else {
      EXPECT_TRUE(SameBits(out, problem.Run(*ref_))) << NameOfCase(problem.c());
    }
  }

  std::unique_ptr<Stream> ref_ = MakeStream(DeviceKind::kRef, 1);
  std::unique_ptr<Stream> fast_;
};

INSTANTIATE_TEST_SUITE_P(Backends, AttentionViewBackendTest,
                         testing::ValuesIn(AttentionBackends()), NameOfBackend);

TEST_P(AttentionViewBackendTest, EqualsReferenceForEveryView) {
  for (const Place place : kPlaces) {
    for (const int64_t rows : Fewer({1, 2, 7, 64}, {7})) {
      Case c{6,   3, 8, DType::kF32, DType::kF32, place.begin, place.position,
             rows};
      for (auto& views : Views(3, place.begin, place.position + rows,
                               !TriesFew() && (rows == 7 || TriesAll()))) {
        c.views = views;
        Problem problem(c);
        ExpectIsReference(problem, problem.Run(*fast_));
      }
    }
  }
}

TEST_P(AttentionViewBackendTest, EqualsReferenceForEveryType) {
  for (const int head_dim : {40, 64, 96}) {
    for (const DType type : KvTypes(head_dim)) {
      for (const int64_t rows : Fewer({1, 9}, {9})) {
        Case c{6, 2, head_dim, type, type, 21, 2 * kPageTokens + 9, rows};
        for (auto& views : Views(2, c.begin, c.position + rows, TriesAll())) {
          c.views = views;
          Problem problem(c);
          ExpectIsReference(problem, problem.Run(*fast_));
        }
      }
    }
  }
}

// A view that hides nothing gives the bits of no view.
TEST_P(AttentionViewBackendTest, EverythingIsTheSameAsNoView) {
  for (const Place place : kPlaces) {
    Case c{8, 2, 40, DType::kF16, DType::kF16, place.begin, place.position, 33};
    const Problem plain(c);
    const std::vector<float> expected = plain.Run(*fast_);
    const int64_t end = place.position + 33;
    for (const ViewCase& all :
         {ViewCase{{}, kAllPositions}, ViewCase{{}, end - place.begin},
          ViewCase{{{0, end}}, 1},
          ViewCase{{{place.begin, place.begin + 200},
                    {place.begin + 200, kAllPositions}},
                   1}}) {
      c.views = {all, all};
      const Problem problem(c);
      EXPECT_TRUE(SameBits(problem.Run(*fast_), expected)) << NameOfCase(c);
    }
  }
}

// Rows are invariant with the edge of the window inside of tiles, too.
TEST_P(AttentionViewBackendTest, RowsDoNotDependOnOtherRowsOrThreads) {
  if (TriesFew() && GetParam().isa != AttentionIsas().back()) GTEST_SKIP();
  std::vector<std::unique_ptr<Stream>> streams;
  for (int threads : {1, 3}) {
    streams.push_back(NewStream(threads));
  }
  for (Case c : {Case{9, 3, 64, DType::kF16, DType::kF16, 5, 300, 64},
                 Case{8, 1, 32, DType::kQ8_0, DType::kQ8_0, 130, 250, 70}}) {
    for (auto& views :
         Views(c.kv_heads, c.begin, c.position + c.rows, TriesAll())) {
      c.views = views;
      const Problem problem(c);
      const std::vector<float> all = problem.Run(*streams[0]);
      EXPECT_TRUE(SameBits(problem.Run(*streams[1]), all)) << NameOfCase(c);
      const int64_t row_floats = int64_t{c.heads} * c.head_dim;
      for (const int64_t step : Fewer({1, 7}, {7})) {
        for (int64_t row = 0; row < c.rows; row += step) {
          const int64_t rows = std::min(step, c.rows - row);
          const std::vector<float> some = problem.Run(*streams[0], row, rows);
          ASSERT_EQ(std::memcmp(some.data(), all.data() + row * row_floats,
                                some.size() * sizeof(float)),
                    0)
              << NameOfCase(c) << ": rows from " << row << " by " << step;
        }
      }
    }
  }
}

// There are several blocks of rows and several waves of pages, some of them
// hidden.
TEST_P(AttentionViewBackendTest, WavesDoNotShow) {
  if (GetParam().device != DeviceKind::kCpu) return;  // has waves of its own
  if (TriesFew() && GetParam().isa != AttentionIsas().back()) GTEST_SKIP();
  Case c{64, 1, 128, DType::kF16, DType::kF16, 0, 1300, 34};
  for (const ViewCase& view :
       {ViewCase{Chunks(0, 1400, 128, 3), 20}, ViewCase{{{0, 4}}, 800},
        ViewCase{Chunks(0, 1400, 8, 4), 1}}) {
    c.views = {view};
    const Problem problem(c);
    const std::vector<float> all = problem.Run(*fast_);
    EXPECT_FALSE(std::isnan(all.front()) || std::isnan(all.back()));
    for (const int64_t row : {0, 30, 33}) {
      const std::vector<float> one = problem.Run(*fast_, row, 1);
      EXPECT_EQ(std::memcmp(one.data(), all.data() + row * 64 * 128,
                            one.size() * sizeof(float)),
                0)
          << row;
    }
  }
}

// A fault that has left the window of a row does not reach it, though other
// rows of its tile see it.
TEST_P(AttentionViewBackendTest, FaultsReachOnlyRowsThatSeeThem) {
  Case c{4, 2, 40, DType::kF32, DType::kF32, 3, kPageTokens - 9, 20};
  c.views = {{{{3, 5}}, 6}, {{{50, 60}}, 11}};
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> clean = Problem(c).Run(*fast_);
  for (const float fault : {kPoison, kInf}) {
    for (const bool in_k : {true, false}) {
      for (int64_t bad = c.position - 5; bad < c.position + 20; bad += 3) {
        Problem problem(c);
        const std::vector<float> row(40, fault);
        for (int head = 0; head < c.kv_heads; ++head) {
          KvRowFromF32(DType::kF32, row.data(), 40,
                       in_k ? problem.K(bad, head) : problem.V(bad, head));
        }
        const std::vector<float> out = problem.Run(*fast_);
        for (size_t i = 0; i < out.size(); ++i) {
          const auto t = c.position + static_cast<int64_t>(i / 160);
          const auto head = static_cast<int>(i / 40 % 4 / 2);
          if (problem.Sees(head, t, bad)) {
            ASSERT_FALSE(std::isfinite(out[i])) << bad << " " << i;
          } else {
            ASSERT_EQ(out[i], clean[i]) << bad << " " << i;
          }
        }
      }
    }
  }
}

TEST(AttentionViewTest, RefusesWhatItCannotRead) {
  for (const DeviceKind device : {DeviceKind::kRef, DeviceKind::kCpu}) {
    const std::unique_ptr<Stream> stream = MakeStream(device, 1);
    Case c{4, 2, 40, DType::kF16, DType::kF16, 5, 300, 3};
    c.views = {{{}, 2}, {{{130, 140}}, 1}};
    const Problem problem(c);
    std::vector<float> out(3 * 160, kPoison);
    const auto code_of = [&](std::vector<PositionRange> fixed, int64_t recent) {
      AttentionParams p = problem.Params();
      const HeadView views[] = {{.fixed = {}, .recent = 1},
                                {.fixed = fixed, .recent = recent}};
      p.view = views;
      p.out = InPlace(out.data());
      const absl::Status status = Attention(*stream, p);
      return status.ok() ? "" : CodeOf(status);
    };
    EXPECT_EQ(code_of({}, 0), "invalid_view");
    EXPECT_EQ(code_of({}, -1), "invalid_view");
    EXPECT_EQ(code_of({{130, 130}}, 1), "invalid_view");
    EXPECT_EQ(code_of({{-1, 130}}, 1), "invalid_view");
    EXPECT_EQ(code_of({{140, 145}, {130, 135}}, 1), "invalid_view");
    EXPECT_EQ(code_of({{130, 135}, {134, 136}}, 1), "invalid_view");
    // The page of positions up to 127 is missing.
    EXPECT_EQ(code_of({{127, 135}}, 1), "invalid_position");
    EXPECT_EQ(code_of({}, 200), "invalid_position");
    for (float x : out) ASSERT_TRUE(std::isnan(x));
    EXPECT_EQ(code_of({{128, 135}}, 1), "");
  }
}

TEST(HeadViewTest, PagesSeenAreThoseOfThePositionsSeen) {
  std::mt19937 random(7);
  const auto below = [&random](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  for (unsigned turn = 0; turn < 300; ++turn) {
    const int64_t begin = below(300);
    const int64_t position = begin + below(1000);
    const int64_t rows = 1 + below(70);
    const std::vector<PositionRange> fixed =
        Chunks(below(500), below(2000), 1 + below(100), turn);
    const HeadView view = {.fixed = fixed, .recent = 1 + below(400)};
    const int64_t first = begin / kPageTokens;
    std::vector<uint8_t> seen(12, 0);
    MarkSeenPages(view, begin, position, rows, first, seen);
    std::vector<uint8_t> expected(12, 0);
    for (int64_t t = position; t < position + rows; ++t) {
      for (int64_t j = begin; j <= t; ++j) {
        bool sees = j > t - view.recent;
        for (const PositionRange& range : fixed) {
          sees = sees || (range.begin <= j && j < range.end);
        }
        if (sees) expected[static_cast<size_t>(j / kPageTokens - first)] = 1;
      }
    }
    ASSERT_EQ(seen, expected) << turn;
  }
}

}  // namespace
}  // namespace tiercel::attention_view_test
