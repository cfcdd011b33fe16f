// Checks the ranges of views against their definition, position by position.

#include "offload/kv/view.h"

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/kv/kv_layout.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

using Ranges = std::vector<PositionRange>;

bool Contains(std::span<const PositionRange> ranges, int64_t j) {
  for (const PositionRange& range : ranges) {
    if (range.begin <= j && j < range.end) return true;
  }
  return false;
}

void ExpectSortedAndApart(std::span<const PositionRange> ranges) {
  int64_t end = -1;
  for (const PositionRange& range : ranges) {
    EXPECT_GT(range.begin, end);  // ranges that touch were joined
    EXPECT_LT(range.begin, range.end);
    end = range.end;
  }
}

// Ranges in any order, which may overlap, touch and be empty.
Ranges RandomRanges(std::mt19937& random, int64_t begin) {
  Ranges ranges(random() % 6);
  for (PositionRange& range : ranges) {
    range.begin = begin + static_cast<int64_t>(random() % 700);
    range.end = range.begin + static_cast<int64_t>(random() % 90);
  }
  return ranges;
}

TEST(ViewTest, RangesAreTheUnionOfWhatWasAskedFor) {
  constexpr int kLayers = 3;
  constexpr int kHeads = 2;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const int64_t begin = static_cast<int64_t>(random() % 3) * 70;
    View view;
    view.sinks = static_cast<int64_t>(random() % 2) * 20;
    view.recent = 1 + static_cast<int64_t>(random() % 200);
    view.pinned = RandomRanges(random, begin);
    if (random() % 3 > 0) {
      for (int i = 0; i < kLayers * kHeads; ++i) {
        view.selected.push_back(RandomRanges(random, begin));
      }
    }
    const absl::StatusOr<BoundView> bound =
        BoundView::Bind(view, kLayers, kHeads, begin);
    ASSERT_TRUE(bound.ok()) << bound.status();
    ASSERT_FALSE(bound->IsFull());
    EXPECT_EQ(bound->LayersAreAlike(), view.selected.empty());
    const int64_t position = begin + static_cast<int64_t>(random() % 600);
    const int64_t rows = 1 + static_cast<int64_t>(random() % 64);
    for (int layer = 0; layer < kLayers; ++layer) {
      std::vector<uint8_t> pages(static_cast<size_t>(
          (position + rows - 1) / kPageTokens + 1 - begin / kPageTokens));
      for (int head = 0; head < kHeads; ++head) {
        const HeadView& got = bound->Heads(layer)[head];
        EXPECT_EQ(got.recent, view.recent);
        ExpectSortedAndApart(got.fixed);
        const auto list = static_cast<size_t>(layer * kHeads + head);
        for (int64_t j = 0; j < 1000; ++j) {
          const bool asked =
              (begin <= j && j < begin + view.sinks) ||
              Contains(view.pinned, j) ||
              (!view.selected.empty() && Contains(view.selected[list], j));
          ASSERT_EQ(Contains(got.fixed, j), asked)
              << "seed " << seed << " layer " << layer << " position " << j;
          for (int64_t t = position; t < position + rows; ++t) {
            if (j >= begin && j <= t && (asked || j > t - view.recent)) {
              pages[static_cast<size_t>(j / kPageTokens -
                                        begin / kPageTokens)] = 1;
            }
          }
        }
      }
      EXPECT_EQ(bound->PagesRead(layer, position, rows), pages) << seed;
    }
  }
}

TEST(ViewTest, FullIsNoViewAtAll) {
  for (const View& view :
       {View::Full(), View{}, View::Window(4, kAllPositions)}) {
    EXPECT_TRUE(view.IsFull());
    const absl::StatusOr<BoundView> bound = BoundView::Bind(view, 2, 2, 7);
    ASSERT_TRUE(bound.ok());
    EXPECT_TRUE(bound->IsFull());
    EXPECT_EQ(bound->Heads(1), nullptr);
  }
  EXPECT_EQ(View::Full(), View{});
  EXPECT_NE(View::Full(), View::Window(4, 100));
}

TEST(ViewTest, SinksAreTheFirstPositionsWhereverTheyAre) {
  for (const int64_t begin : {0, 120007}) {
    BoundView bound = *BoundView::Bind(View::Window(4, 100), 30, 3, begin);
    const BoundView moved = std::move(bound);  // stores move views, too
    for (const int layer : {0, 29}) {
      const HeadView& view = moved.Heads(layer)[2];
      ASSERT_EQ(view.fixed.size(), 1u);
      EXPECT_EQ(view.fixed[0], (PositionRange{begin, begin + 4}));
      EXPECT_EQ(view.recent, 100);
    }
  }
  EXPECT_TRUE(
      BoundView::Bind(View::Window(0, 1), 1, 1, 0)->Heads(0)[0].fixed.empty());
}

TEST(ViewTest, RefusesWhatMeansNothing) {
  const auto code_of = [](auto change) {
    View view = View::Window(4, 100);
    change(view);
    const auto bound = BoundView::Bind(view, 3, 2, 0);
    return bound.ok() ? "" : CodeOf(bound.status());
  };
  EXPECT_EQ(code_of([](View&) {}), "");
  EXPECT_EQ(code_of([](View& v) { v.sinks = -1; }), "invalid_view");
  EXPECT_EQ(code_of([](View& v) { v.sinks = kAllPositions; }), "invalid_view");
  EXPECT_EQ(code_of([](View& v) { v.recent = 0; }), "invalid_view");
  EXPECT_EQ(code_of([](View& v) { v.recent = -5; }), "invalid_view");
  EXPECT_EQ(code_of([](View& v) { v.pinned = {{-1, 5}}; }), "invalid_view");
  EXPECT_EQ(code_of([](View& v) { v.pinned = {{7, 6}}; }), "invalid_view");
  EXPECT_EQ(code_of([](View& v) { v.pinned = {{7, 7}}; }), "");
  EXPECT_EQ(code_of([](View& v) { v.selected.resize(5); }), "invalid_view");
  EXPECT_EQ(code_of([](View& v) { v.selected.resize(6); }), "");
  EXPECT_EQ(code_of([](View& v) {
              v.selected.resize(6);
              v.selected[5] = {{3, 2}};
            }),
            "invalid_view");
}

}  // namespace
}  // namespace tiercel
