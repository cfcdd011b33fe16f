#include "runtime/predict/session_plan.h"

#include <cstdint>
#include <utility>

#include "gtest/gtest.h"

namespace tiercel {
namespace {

ModelConfig Shape(int layers, int heads, int head_dim) {
  ModelConfig config;
  config.layers = layers;
  config.heads = heads;
  config.head_dim = head_dim;
  return config;
}

TEST(PromptRowsAtOnceTest, AreFewWhereARowTakesLong) {
  const ModelConfig small = Shape(30, 9, 64);
  const ModelConfig large = Shape(32, 32, 128);
  EXPECT_EQ(PromptRowsAtOnce(small, 100'000'000, 2, 0), 512);
  // 10 MB of a layer's weights, 1 GiB of them in time for each thread.
  EXPECT_EQ(PromptRowsAtOnce(small, 300'000'000, 1, 0), 128);
  EXPECT_EQ(PromptRowsAtOnce(small, 300'000'000, 2, 0), 214);
  EXPECT_EQ(PromptRowsAtOnce(small, 300'000'000, 16, 0), 512);
  EXPECT_EQ(PromptRowsAtOnce(large, 7'000'000'000, 2, 0), 128);
  EXPECT_EQ(PromptRowsAtOnce(large, 7'000'000'000, 32, 0), 157);
  // 8,000 others: 65,536,000 elements of K and V for a row, of 6 GiB.
  EXPECT_EQ(PromptRowsAtOnce(large, 7'000'000'000, 2, 8000), 98);
  EXPECT_EQ(PromptRowsAtOnce(large, 7'000'000'000, 2, 128 * 1024), 64);
}

// Memory is taken for those after none.
TEST(PromptRowsAtOnceTest, FallWithThoseBefore) {
  const ModelConfig config = Shape(30, 9, 64);
  int64_t last = PromptRowsAtOnce(config, 100'000'000, 2, 0);
  for (int64_t before = 0; before < 2'000'000; before += 999) {
    const int64_t rows = PromptRowsAtOnce(config, 100'000'000, 2, before);
    ASSERT_LE(rows, last) << before;
    ASSERT_GE(rows, 64) << before;
    last = rows;
  }
  EXPECT_EQ(last, 64);
}

// The view's memory is counted as it is taken: q8_0 where a head is of whole
// blocks, whatever the store's types.
TEST(SessionSiteTest, AViewHoldsTheSmallestRows) {
  ModelConfig config = Shape(30, 9, 64);
  for (const auto& [head_dim, type] :
       {std::pair(64, DType::kQ8_0), {72, DType::kF16}}) {
    const SessionSite site = {.config = config,
                              .weights = {},
                              .layout = {DType::kF16, DType::kF16, 3, head_dim},
                              .retrieval = RetrievalSize()};
    const Retrieval::Shape shape = site.RetrievalShape(8000);
    EXPECT_EQ(shape.layout.type_k, DType::kF16);
    EXPECT_EQ(shape.view_layout.type_k, type);
    EXPECT_EQ(shape.view_layout.type_v, type);
    EXPECT_EQ(shape.view_layout.head_dim, head_dim);
    EXPECT_EQ(shape.view_layout.kv_heads, 3);
  }
}

}  // namespace
}  // namespace tiercel
