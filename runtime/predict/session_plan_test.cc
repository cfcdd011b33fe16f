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
