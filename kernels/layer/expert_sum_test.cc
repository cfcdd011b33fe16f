#include "kernels/layer/expert_sum.h"

#include <memory>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/layer/testing.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"

namespace tiercel::expert_sum_test {
namespace {

using testing::ElementsAre;

// Rows of y and of out have a gap of one float.
std::vector<float> Sum(Stream& stream, const std::vector<float>& y,
                       const std::vector<int32_t>& items,
                       const std::vector<float>& shares, int used, int64_t dim,
                       const std::vector<float>& before) {
  const auto rows = static_cast<int64_t>(items.size()) / used;
  OnDevice<float> in(stream, y);
  OnDevice<float> of(stream, shares);
  OnDevice<float> out(stream, before);
  const absl::Status status = ExpertSum(
      stream, {.y = in.data(),
               .y_stride = dim + 1,
               .num_items = static_cast<int64_t>(y.size()) / (dim + 1),
               .items = items.data(),
               .shares = of.data(),
               .rows = rows,
               .used = used,
               .dim = dim,
               .out = out.data(),
               .out_stride = dim + 1});
  EXPECT_TRUE(status.ok()) << status;
  return out.Read();
}

class ExpertSumTest : public ThreeStreamsTest {};
INSTANTIATE_TEST_SUITE_P(Backends, ExpertSumTest, testing::ValuesIn(Backends()),
                         NameOfBackend);

TEST_P(ExpertSumTest, AddsSharesOfTheRowsItems) {
  const std::vector<float> y = {1, 2, -9, 30, 40, -9, 500, 600, -9};
  EXPECT_THAT(Sum(*one_, y, {2, 0, 1, 2}, {0.5f, 2, 1, 0.25f}, 2, 2,
                  {1000, 2000, -1, 3000, 4000, -1}),
              ElementsAre(1252, 2304, -1, 3155, 4190, -1));
}

TEST_P(ExpertSumTest, EqualsReference) {
  for (const int64_t dim : {1, 15, 16, 33, 2048}) {
    for (const int64_t rows : Fewer({1, 3, 9}, {3})) {
      for (const int used : {1, 2, 8}) {
        std::vector<int32_t> items(static_cast<size_t>(rows * used));
        for (size_t i = 0; i < items.size(); ++i) {
          items[i] = static_cast<int32_t>(items.size() - 1 - i);
        }
        const std::vector<float> y = RandomX(rows * used, dim + 1, 1);
        const std::vector<float> shares = RandomX(rows, used, 2);
        const std::vector<float> before = RandomX(rows, dim + 1, 3);
        const std::vector<float> expected =
            Sum(*ref_, y, items, shares, used, dim, before);
        for (Stream* stream : {one_.get(), three_.get()}) {
          const std::vector<float> got =
              Sum(*stream, y, items, shares, used, dim, before);
          if (HasFma()) {
            ASSERT_TRUE(SameBits(got, expected)) << dim << " " << used;
          }
          for (size_t i = 0; i < got.size(); ++i) {
            ASSERT_NEAR(got[i], expected[i], 1e-2);
          }
        }
      }
    }
  }
}

TEST_P(ExpertSumTest, RefusesWrongParameters) {
  float one = 1.0f;
  const auto code = [&](int32_t item, int64_t rows, int used, int64_t dim) {
    return CodeOf(ExpertSum(*one_, {.y = InPlace(&one),
                                    .y_stride = 1,
                                    .num_items = 1,
                                    .items = &item,
                                    .shares = InPlace(&one),
                                    .rows = rows,
                                    .used = used,
                                    .dim = dim,
                                    .out = InPlace(&one),
                                    .out_stride = 1}));
  };
  EXPECT_EQ(code(0, -1, 1, 1), "invalid_sizes");
  EXPECT_EQ(code(0, 1, 0, 1), "invalid_sizes");
  EXPECT_EQ(code(0, 1, 1, 2), "invalid_sizes");
  EXPECT_EQ(code(1, 1, 1, 1), "invalid_argument");
  EXPECT_EQ(code(-1, 1, 1, 1), "invalid_argument");
}

}  // namespace
}  // namespace tiercel::expert_sum_test
