#include "models/tokenizer/merge.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kernels/system/testing.h"
#include "models/tokenizer/merge_rules_for_test.h"

namespace tiercel {
namespace {

std::vector<int32_t> Merged(Merger* merger, const std::vector<int32_t>& ids,
                            const Rules& rules) {
  merger->Clear();
  for (size_t i = 0; i < ids.size(); ++i) {
    merger->Add(static_cast<uint32_t>(i), 1, ids[i]);
  }
  merger->Run([&rules](const Symbol& left, const Symbol& right) {
    EXPECT_EQ(left.begin + left.bytes, right.begin);
    return FindRule(rules, left.id, right.id);
  });
  std::vector<int32_t> result;
  uint32_t end = 0;
  merger->ForEach([&](const Symbol& symbol) {
    EXPECT_EQ(symbol.begin, end);
    end += symbol.bytes;
    result.push_back(symbol.id);
  });
  EXPECT_EQ(end, ids.size());
  return result;
}

// The definition of the result: it searches the whole list before every merge.
std::vector<int32_t> MergedPlainly(std::vector<int32_t> ids,
                                   const Rules& rules) {
  while (true) {
    size_t best_at = 0;
    std::optional<Merge> best;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const std::optional<Merge> rule = FindRule(rules, ids[i], ids[i + 1]);
      if (rule && (!best || rule->rank < best->rank)) {
        best = rule;
        best_at = i;
      }
    }
    if (!best) return ids;
    ids[best_at] = best->id;
    ids.erase(ids.begin() + static_cast<int64_t>(best_at) + 1);
  }
}

TEST(MergeTest, LowestRankFirstThenLeftmost) {
  Merger merger;
  const Rules rules = {{{1, 2}, {1, 12}}, {{2, 3}, {0, 23}}, {{1, 1}, {2, 11}}};
  EXPECT_EQ(Merged(&merger, {1, 2, 3}, rules), (std::vector<int32_t>{1, 23}));
  EXPECT_EQ(Merged(&merger, {1, 1, 1}, rules), (std::vector<int32_t>{11, 1}));
  EXPECT_EQ(Merged(&merger, {}, rules), (std::vector<int32_t>{}));
  EXPECT_EQ(Merged(&merger, {1}, rules), (std::vector<int32_t>{1}));
}

// A rule's rank may be below those that it builds on: a merge may enable a
// better one, before or after it, and several may have one rank.
TEST(MergeTest, EqualsThePlainDefinitionOnRandomRules) {
  std::mt19937 random(3);
  Merger merger;
  for (int round = 0; round < (TriesLess() ? 2000 : 20000); ++round) {
    const int32_t base = 1 + static_cast<int32_t>(random() % 4);
    const Rules rules = RandomRules(random, base);
    std::vector<int32_t> ids(random() % 40);
    for (int32_t& id : ids) id = static_cast<int32_t>(random() % base);
    ASSERT_EQ(Merged(&merger, ids, rules), MergedPlainly(ids, rules));
  }
}

TEST(MergeTest, AMillionEqualSymbols) {
  Merger merger;
  Rules rules;
  for (int32_t i = 0; i < 6; ++i) {
    rules[{i, i}] = {static_cast<uint32_t>(i), i + 1};
  }
  const std::vector<int32_t> result =
      Merged(&merger, std::vector<int32_t>(1000003, 0), rules);
  // 1000003 = 15625 * 64 + 2 + 1
  ASSERT_EQ(result.size(), 15625u + 2);
  for (size_t i = 0; i < 15625; ++i) ASSERT_EQ(result[i], 6);
  EXPECT_EQ(result[15625], 1);
  EXPECT_EQ(result[15626], 0);
}

}  // namespace
}  // namespace tiercel
