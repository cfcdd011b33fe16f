#include "models/decoder/model_split.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/status/error.h"

namespace tiercel::model_split_test {
namespace {

using ::testing::HasSubstr;

ModelConfig Config(int heads, int kv_heads) {
  ModelConfig config;
  config.vocab = 1003;
  config.hidden = 100;
  config.layers = 2;
  config.heads = heads;
  config.kv_heads = kv_heads;
  config.head_dim = 8;
  config.ffn = 257;
  return config;
}

ModelSplit Split(const ModelConfig& config, int ranks) {
  auto split = ModelSplit::Create(config, ranks);
  EXPECT_TRUE(split.ok()) << split.status();
  return *std::move(split);
}

// Expects that the parts follow each other without gaps, from 0 to the end.
void ExpectCover(const std::vector<Columns>& parts, int64_t size) {
  int64_t end = 0;
  for (const Columns& part : parts) {
    EXPECT_EQ(part.begin, end);
    EXPECT_GT(part.size(), 0);
    end = part.end;
  }
  EXPECT_EQ(end, size);
}

TEST(ModelSplitTest, EveryOutputIsOfOneRank) {
  for (const auto& [heads, kv_heads] :
       {std::pair(9, 3), std::pair(8, 1), std::pair(32, 8), std::pair(4, 4),
        std::pair(12, 2)}) {
    const ModelConfig config = Config(heads, kv_heads);
    for (int ranks = 1; ranks <= 4; ++ranks) {
      const ModelSplit split = Split(config, ranks);
      EXPECT_EQ(split.ranks(), ranks);
      ExpectCover(split.attention(), heads * 8);
      ExpectCover(split.hidden(), 100);
      ExpectCover(split.ffn(), 257);
      ExpectCover(split.vocab(), 1003);
      for (const auto* parts :
           {&split.hidden(), &split.ffn(), &split.vocab()}) {
        for (const Columns& part : *parts) EXPECT_EQ(part.begin % 16, 0);
      }
      const int group = heads / kv_heads;
      for (int rank = 0; rank < ranks; ++rank) {
        const Columns& own = split.heads(rank);
        // A rank's query heads belong to its KV heads, with the same number for
        // each.
        EXPECT_EQ(own.begin / group, split.kv_heads(rank).begin);
        EXPECT_EQ((own.end - 1) / group + 1, split.kv_heads(rank).end);
        EXPECT_EQ(own.size() % split.kv_heads(rank).size(), 0);
        EXPECT_LE(split.query_heads(rank).begin, own.begin);
        EXPECT_GE(split.query_heads(rank).end, own.end);
        EXPECT_EQ(split.query_heads(rank).size(),
                  split.kv_heads(rank).size() * group);
        if (kv_heads >= ranks) {
          EXPECT_EQ(split.query_heads(rank), own);
        }
      }
    }
  }
}

TEST(ModelSplitTest, SharesDifferByAHead) {
  const ModelSplit uneven = Split(Config(9, 3), 2);
  EXPECT_EQ(uneven.kv_heads(0), (Columns{0, 1}));
  EXPECT_EQ(uneven.kv_heads(1), (Columns{1, 3}));
  EXPECT_EQ(uneven.heads(1), (Columns{3, 9}));
}

TEST(ModelSplitTest, ARankKeepsTheKvHeadThatItShares) {
  const ModelSplit four = Split(Config(9, 3), 4);
  EXPECT_EQ(four.kv_heads(0), (Columns{0, 1}));
  EXPECT_EQ(four.kv_heads(1), (Columns{0, 1}));
  EXPECT_EQ(four.heads(0), (Columns{0, 1}));
  EXPECT_EQ(four.heads(1), (Columns{1, 3}));
  EXPECT_EQ(four.query_heads(1), (Columns{0, 3}));
  EXPECT_TRUE(four.IsFirstOfHeads(0));
  EXPECT_FALSE(four.IsFirstOfHeads(1));
  EXPECT_TRUE(four.IsFirstOfHeads(2));
}

TEST(ModelSplitTest, WhatIsGatheredIsWhatOthersCompute) {
  const ModelSplit split = Split(Config(9, 3), 2);
  // Rank 0 has 3 of 9 heads of 8, 48 of 100 hidden, 128 of 257 ffn columns and
  // 496 of 1,003 tokens.
  EXPECT_EQ(split.GatheredPerLayer(0), 4 * (6 * 8 + 2 * 52 + 129));
  EXPECT_EQ(split.GatheredLogits(0), 4 * (1003 - 496));
  EXPECT_EQ(Split(Config(9, 3), 1).GatheredPerLayer(0), 0);
}

// The columns of each expert are divided; a row's experts are gathered.
TEST(ModelSplitTest, ExpertsAreDividedByTheirColumns) {
  ModelConfig config = Config(9, 3);
  EXPECT_TRUE(Split(config, 2).expert_ffn().empty());
  EXPECT_EQ(Split(config, 2).GatheredPerLayer(0, /*experts=*/true),
            4 * (6 * 8 + 2 * 52));
  config.experts = {.count = 10, .used = 3, .ffn = 41};
  const ModelSplit split = Split(config, 2);
  EXPECT_EQ(split.expert_ffn(), (std::vector<Columns>{{0, 16}, {16, 41}}));
  EXPECT_EQ(split.GatheredPerLayer(0), 4 * (6 * 8 + 2 * 52 + 129));
  EXPECT_EQ(split.GatheredPerLayer(0, /*experts=*/true),
            4 * (6 * 8 + 2 * 52 + 3 * 25));
}

TEST(ModelSplitTest, WhatCannotBeSplitSaysWhy) {
  const auto why = [](const ModelConfig& config, int ranks) {
    const absl::Status status = ModelSplit::Create(config, ranks).status();
    EXPECT_EQ(ClassOf(status), ErrorClass::kUsage) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(why(Config(9, 3), 10), HasSubstr("9 query heads for 3 KV heads"));
  EXPECT_THAT(why(Config(4, 4), 5), HasSubstr("over 5 ranks"));
  ModelConfig narrow = Config(8, 8);
  narrow.hidden = 7;
  EXPECT_THAT(why(narrow, 8), HasSubstr("7 hidden"));
  ModelConfig narrow_experts = Config(8, 8);
  narrow_experts.experts = {.count = 10, .used = 3, .ffn = 7};
  EXPECT_THAT(why(narrow_experts, 8), HasSubstr("7 ffn columns"));
  ModelConfig few = Config(8, 8);
  few.vocab = 48;
  EXPECT_THAT(why(few, 4), HasSubstr("48 tokens"));
  EXPECT_TRUE(ModelSplit::Create(few, 3).ok());
  for (const int ranks : {0, -1, 65}) {
    EXPECT_THAT(why(Config(9, 3), ranks), HasSubstr("need 1 to 64"));
  }
}

}  // namespace
}  // namespace tiercel::model_split_test
