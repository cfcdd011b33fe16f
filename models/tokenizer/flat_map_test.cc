#include "models/tokenizer/flat_map.h"

#include <map>
#include <random>
#include <string>

#include "gtest/gtest.h"

namespace tiercel {
namespace {

TEST(FlatMapTest, NothingIsInAnEmptyOne) {
  const FlatMap<uint64_t, int> map;
  EXPECT_TRUE(map.empty());
  EXPECT_EQ(map.Find(0), nullptr);
}

TEST(FlatMapTest, HoldsWhatAMapHolds) {
  std::mt19937_64 random(1);
  for (const size_t reserved : {0, 10, 5000}) {
    FlatMap<uint64_t, int> map;
    map.Reserve(reserved);
    std::map<uint64_t, int> expected;
    for (int i = 0; i < 20000; ++i) {
      // A few keys, near and far from each other, with 0 among them.
      const uint64_t key = random() % 4000 << (random() % 2 * 40);
      if (i % 3 == 0) {
        map.Assign(key, i);
        expected[key] = i;
      } else {
        EXPECT_EQ(map.Insert(key, i), expected.emplace(key, i).second);
      }
      ASSERT_EQ(map.size(), expected.size());
      const uint64_t other = random() % 5000;
      const auto found = expected.find(other);
      const int* const value = map.Find(other);
      ASSERT_EQ(value != nullptr, found != expected.end()) << other;
      if (value != nullptr) {
        ASSERT_EQ(*value, found->second);
      }
    }
    for (const auto& [key, value] : expected) {
      ASSERT_NE(map.Find(key), nullptr);
      EXPECT_EQ(*map.Find(key), value);
    }
  }
}

TEST(FlatMapTest, StringsAreItsOwnAndFoundByViews) {
  FlatMap<std::string, int> map;
  for (int i = 0; i < 1000; ++i) {
    const std::string key =
        std::string(static_cast<size_t>(i % 40), 'x') + std::to_string(i);
    EXPECT_TRUE(map.Insert(key, i));
    EXPECT_FALSE(map.Insert(key, -1));
  }
  EXPECT_EQ(*map.Find("0"), 0);
  EXPECT_EQ(*map.Find("xx42"), 42);
  EXPECT_EQ(map.Find("xx43"), nullptr);
  EXPECT_EQ(map.Find(""), nullptr);
}

}  // namespace
}  // namespace tiercel
