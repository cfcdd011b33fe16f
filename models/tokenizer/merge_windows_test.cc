#include "models/tokenizer/merge_windows.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kernels/system/testing.h"
#include "models/tokenizer/merge_rules_for_test.h"

namespace tiercel {
namespace {

using Ids = std::vector<int32_t>;

struct Windowed {
  Ids ids;
  int restarts = -1;  // starts at -1, since the first window counts as one
  size_t longest = 0;
};

Windowed MergedInWindows(const Ids& symbols, const Rules& rules,
                         size_t window) {
  Windowed result;
  Merger merger;
  size_t looked = 0;
  const absl::Status s = MergeInWindows(
      symbols.size(), &merger,
      [&](size_t begin, size_t end) {
        result.longest = std::max(result.longest, end - begin);
        merger.Clear();
        for (size_t i = begin; i < end; ++i) {
          merger.Add(static_cast<uint32_t>(i), 1, symbols[i]);
        }
        merger.Run([&](const Symbol& left, const Symbol& right) {
          return FindRule(rules, left.id, right.id);
        });
        return absl::OkStatus();
      },
      [&] {
        result.ids.clear();
        ++result.restarts;
      },
      [&](const Symbol& symbol) {
        result.ids.push_back(symbol.id);
        return absl::OkStatus();
      },
      [&](size_t end) {
        looked = end;
        return absl::OkStatus();
      },
      window);
  result.restarts += 1;
  EXPECT_TRUE(s.ok());
  EXPECT_EQ(looked, symbols.size());
  return result;
}

// Rules of every kind, with ranks in any order, also rules by which later text
// changes the tokens of much text before it.
TEST(MergeWindowsTest, EqualsOneWindowOnRandomRules) {
  std::mt19937 random(5);
  int in_windows = 0;
  int restarts = 0;
  for (int round = 0; round < (TriesLess() ? 1000 : 10000); ++round) {
    const int32_t base = 1 + static_cast<int32_t>(random() % 4);
    const Rules rules = RandomRules(random, base);
    Ids symbols(random() % 400);
    const int period = 1 + static_cast<int>(random() % 40);
    for (size_t i = 0; i < symbols.size(); ++i) {
      // Periodic texts have long chains of merges that depend on each other.
      symbols[i] = round % 2 == 0 && i >= static_cast<size_t>(period)
                       ? symbols[i - static_cast<size_t>(period)]
                       : static_cast<int32_t>(random() % base);
    }
    const Windowed whole = MergedInWindows(symbols, rules, symbols.size() + 1);
    const Windowed windowed =
        MergedInWindows(symbols, rules, 16 + random() % 64);
    ASSERT_EQ(windowed.ids, whole.ids);
    ASSERT_EQ(whole.restarts, 0);
    restarts += windowed.restarts;
    in_windows += windowed.longest < symbols.size();
  }
  // Both paths are taken.
  EXPECT_GT(in_windows, 1000 / (TriesLess() ? 10 : 1));
  EXPECT_GT(restarts, 100 / (TriesLess() ? 10 : 1));
}

TEST(MergeWindowsTest, ALongRunNeedsNoLongerWindow) {
  Rules rules;
  for (int32_t i = 0; i < 6; ++i) {
    rules[{i, i}] = {static_cast<uint32_t>(i), i + 1};
  }
  const Windowed windowed = MergedInWindows(Ids(1000003, 0), rules, 4096);
  EXPECT_EQ(windowed.restarts, 0);
  EXPECT_EQ(windowed.longest, 4096u);
  // 1000003 = 15625 * 64 + 2 + 1
  Ids expected(15625, 6);
  expected.insert(expected.end(), {1, 0});
  EXPECT_EQ(windowed.ids, expected);
}

}  // namespace
}  // namespace tiercel
