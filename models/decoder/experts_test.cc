#include "models/decoder/experts.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/status/error.h"

namespace tiercel::experts_test {
namespace {

using testing::ElementsAre;

TEST(ExpertGroupsTest, SortsRowsByExpert) {
  ExpertGroups groups;
  const std::vector<int32_t> chosen = {1, 3, 0, 3, 1, 4};  // [3 rows, 2]
  ASSERT_TRUE(groups.Sort(chosen, {.count = 6, .used = 2}).ok());
  EXPECT_THAT(groups.rows(), ElementsAre(1, 0, 2, 0, 1, 2));
  EXPECT_THAT(groups.items(), ElementsAre(1, 3, 0, 4, 2, 5));
  std::vector<std::vector<int64_t>> seen;
  for (const ExpertGroup& group : groups.groups()) {
    seen.push_back({group.expert, group.begin, group.end});
  }
  EXPECT_EQ(seen, (std::vector<std::vector<int64_t>>{
                      {0, 0, 1}, {1, 1, 3}, {3, 3, 5}, {4, 5, 6}}));
  // Another step forgets the one before.
  ASSERT_TRUE(
      groups.Sort(std::vector<int32_t>{5, 2}, {.count = 6, .used = 2}).ok());
  EXPECT_THAT(groups.rows(), ElementsAre(0, 0));
  EXPECT_THAT(groups.items(), ElementsAre(1, 0));
  EXPECT_EQ(groups.groups().size(), 2u);
}

TEST(ExpertGroupsTest, RefusesExpertsThatThereAreNot) {
  ExpertGroups groups;
  for (const int32_t bad : {-1, 6}) {
    EXPECT_EQ(CodeOf(groups.Sort(std::vector<int32_t>{0, bad},
                                 {.count = 6, .used = 2})),
              "internal");
  }
}

// Three in four pairs of rows, with one of four experts each, use two experts.
TEST(DistinctExpertsTest, IsExpectedOfIndependentRows) {
  const ExpertsConfig few = {.count = 4, .used = 1};
  EXPECT_DOUBLE_EQ(DistinctExperts(few, 0), 0);
  EXPECT_DOUBLE_EQ(DistinctExperts(few, 1), 1);
  EXPECT_DOUBLE_EQ(DistinctExperts(few, 2), 1.75);
  EXPECT_NEAR(DistinctExperts({.count = 128, .used = 8}, 8), 51.6, 0.1);
  EXPECT_DOUBLE_EQ(DistinctExperts({.count = 8, .used = 8}, 3), 8);
  EXPECT_DOUBLE_EQ(DistinctExperts({}, 3), 0);
}

}  // namespace
}  // namespace tiercel::experts_test
