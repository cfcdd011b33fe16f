#include "kernels/layer/gather_rows.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/layer/testing.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"

namespace tiercel::gather_rows_test {
namespace {

class GatherRowsTest : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (!IsSkipped()) stream_ = NewStream(2);
  }

  std::unique_ptr<Stream> stream_;
};
INSTANTIATE_TEST_SUITE_P(Backends, GatherRowsTest,
                         testing::ValuesIn(Backends()), NameOfBackend);

TEST_P(GatherRowsTest, CopiesTheRows) {
  const std::vector<int32_t> rows = {2, 0, 0, 4, 1};
  for (const int64_t dim : {1, 7, 8, 600}) {
    for (const int64_t gap : {0, 3, 4}) {
      const int64_t stride = dim + gap;
      const std::vector<float> x = RandomX(5, stride, 3);
      OnDevice<float> in(*stream_, x);
      OnDevice<float> out(*stream_,
                          std::vector<float>(rows.size() * dim + 1, kPoison));
      ASSERT_TRUE(GatherRows(*stream_, {.x = in.data(),
                                        .x_stride = stride,
                                        .x_rows = 5,
                                        .rows = rows.data(),
                                        .items = std::ssize(rows),
                                        .dim = dim,
                                        .out = out.data()})
                      .ok());
      std::vector<float> got = out.Read();
      EXPECT_TRUE(std::isnan(got.back()));  // nothing was written beyond
      got.pop_back();
      std::vector<float> expected;
      for (const int32_t row : rows) {
        expected.insert(expected.end(), x.begin() + row * stride,
                        x.begin() + row * stride + dim);
      }
      ASSERT_EQ(got, expected) << dim << " " << gap;
    }
  }
}

TEST_P(GatherRowsTest, RefusesWrongParameters) {
  float one = 1.0f;
  const auto code = [&](int32_t row, int64_t items, int64_t dim) {
    return CodeOf(GatherRows(*stream_, {.x = InPlace(&one),
                                        .x_stride = 1,
                                        .x_rows = 1,
                                        .rows = &row,
                                        .items = items,
                                        .dim = dim,
                                        .out = InPlace(&one)}));
  };
  EXPECT_EQ(code(0, -1, 1), "invalid_sizes");
  EXPECT_EQ(code(0, 1, 2), "invalid_sizes");
  EXPECT_EQ(code(1, 1, 1), "invalid_argument");
  EXPECT_EQ(code(-1, 1, 1), "invalid_argument");
}

}  // namespace
}  // namespace tiercel::gather_rows_test
