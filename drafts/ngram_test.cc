#include "drafts/ngram.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tiercel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Ids = std::vector<int32_t>;

Ids Drafted(const Ids& tokens, int64_t most, int64_t longest = 3,
            int64_t shortest = 2) {
  NgramDrafter drafter(longest, shortest);
  const absl::StatusOr<DraftBlock> block = drafter.Draft(tokens, most, {});
  EXPECT_TRUE(block.ok());
  EXPECT_EQ(block->distributions.size(), block->tokens.size());
  for (size_t i = 0; i < block->tokens.size(); ++i) {
    EXPECT_THAT(block->distributions[i].ids, ElementsAre(block->tokens[i]));
    EXPECT_THAT(block->distributions[i].probabilities, ElementsAre(1.0f));
  }
  return block->tokens;
}

TEST(NgramTest, GoesOnAsItDid) {
  EXPECT_THAT(Drafted({7, 8, 1, 2, 3, 4, 7, 8}, 3), ElementsAre(1, 2, 3));
  EXPECT_THAT(Drafted({7, 8, 1, 2, 3, 4, 7, 8}, 1), ElementsAre(1));
}

TEST(NgramTest, UpToTheEndOfWhatThereIs) {
  EXPECT_THAT(Drafted({7, 8, 7, 8}, 5), ElementsAre(7, 8));
  EXPECT_THAT(Drafted({5, 5, 5}, 5), ElementsAre(5));
}

TEST(NgramTest, NothingSuggestsItself) {
  EXPECT_THAT(Drafted({}, 5), IsEmpty());
  EXPECT_THAT(Drafted({1}, 5), IsEmpty());
  EXPECT_THAT(Drafted({1, 2, 3, 4}, 5), IsEmpty());
  EXPECT_THAT(Drafted({1, 2, 3, 1}, 5), IsEmpty());  // one token is too little
  EXPECT_THAT(Drafted({1, 2, 3, 1}, 5, 3, 1), ElementsAre(2, 3, 1));
}

TEST(NgramTest, LongerMatchesCountMoreThenLaterOnes) {
  // 1 2 3 -> 40 is three tokens, 2 3 -> 50 only two, though later.
  EXPECT_THAT(Drafted({1, 2, 3, 40, 9, 2, 3, 50, 1, 2, 3}, 1), ElementsAre(40));
  EXPECT_THAT(Drafted({1, 2, 3, 40, 1, 2, 3, 50, 1, 2, 3}, 1), ElementsAre(50));
  // A match longer than `longest` counts no more.
  EXPECT_THAT(Drafted({1, 2, 3, 40, 9, 2, 3, 50, 1, 2, 3}, 1, 2, 2),
              ElementsAre(50));
}

TEST(NgramTest, AMatchMayOverlapTheEnd) {
  EXPECT_THAT(Drafted({1, 2, 1, 2, 1}, 4, 3, 2), ElementsAre(2, 1));
}

}  // namespace
}  // namespace tiercel
