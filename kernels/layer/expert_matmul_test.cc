#include "kernels/layer/expert_matmul.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/layer/testing.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"

namespace tiercel::expert_matmul_test {
namespace {

constexpr int kExperts = 5;

// Two matrices of several experts that read the same rows, with a gap after
// every row of x and of the outputs.
struct Problem {
  static constexpr int64_t kGap = 3;

  Problem(DType first, DType second, int64_t outputs, int64_t columns,
          int64_t rows_of_x)
      : n(outputs),
        k(columns),
        x_rows(rows_of_x),
        x(RandomX(rows_of_x, columns + kGap, 9)) {
    for (int e = 0; e < kExperts; ++e) {
      const auto seed = static_cast<unsigned>(2 * e);
      weights[0].push_back(RandomWeights(first, n, k, seed));
      weights[1].push_back(RandomWeights(second, n, k, seed + 1));
    }
  }

  // All experts' matrices in one, for a stream.
  PackedMatrix Packed(Stream& stream, int i) const {
    const DType type = weights[i].front().Packed().type();
    PackedMatrix all =
        *PackedMatrix::Create(type, kExperts * ExpertStride(n), k,
                              SystemMemory(), PackedMatrix::OrderFor(stream));
    for (int e = 0; e < kExperts; ++e) {
      weights[i][static_cast<size_t>(e)].PackInto(all, e * ExpertStride(n));
    }
    return *all.CopyTo(stream);
  }

  // The outputs of items, [items, n], by one call.
  std::vector<float> Run(Stream& stream, const std::vector<int32_t>* rows,
                         const std::vector<ExpertGroup>& groups,
                         Compute compute, int output) const {
    const int64_t items = groups.back().end;
    const PackedMatrix both[] = {Packed(stream, 0), Packed(stream, 1)};
    OnDevice<float> in(stream, x);
    const std::vector<float> poison(static_cast<size_t>(items * (n + kGap)),
                                    kPoison);
    OnDevice<float> out[] = {{stream, poison}, {stream, poison}};
    OnDevice<float> room(
        stream, std::vector<float>(static_cast<size_t>(items * k), kPoison));
    ExpertMatmulParams p = {.x = in.data(),
                            .x_stride = k + kGap,
                            .x_rows = x_rows,
                            .rows = rows != nullptr ? rows->data() : nullptr,
                            .items = items,
                            .groups = groups.data(),
                            .num_groups = std::ssize(groups),
                            .n = n,
                            .compute = compute,
                            .num_outputs = 2,
                            .outputs = {},
                            .room = room.data()};
    for (int i = 0; i < 2; ++i) {
      p.outputs[i] = {&both[i], out[i].data(), n + kGap};
    }
    const absl::Status status = ExpertMatmul(stream, p);
    EXPECT_TRUE(status.ok()) << status;
    std::vector<float> values;
    const std::vector<float> all = out[output].Read();
    for (int64_t i = 0; i < items; ++i) {
      const auto row = all.begin() + i * (n + kGap);
      values.insert(values.end(), row, row + n);
      EXPECT_TRUE(std::isnan(row[n])) << "written between rows";
    }
    return values;
  }

  // The outputs that Matmul's reference gives, item by item.
  std::vector<float> Expected(const std::vector<int32_t>* rows,
                              const std::vector<ExpertGroup>& groups,
                              Compute compute, int output) const {
    const auto stream = MakeStream(DeviceKind::kRef);
    std::vector<float> values;
    for (const ExpertGroup& group : groups) {
      const PackedMatrix w =
          weights[output][static_cast<size_t>(group.expert)].Packed();
      for (int64_t i = group.begin; i < group.end; ++i) {
        const int64_t row =
            rows != nullptr ? (*rows)[static_cast<size_t>(i)] : i;
        std::vector<float> one(x.begin() + row * (k + kGap),
                               x.begin() + row * (k + kGap) + k);
        std::vector<float> out(static_cast<size_t>(n));
        EXPECT_TRUE(
            Matmul(*stream, {.x = InPlace<const float>(one.data()),
                             .x_stride = k,
                             .rows = 1,
                             .compute = compute,
                             .num_outputs = 1,
                             .outputs = {{&w, nullptr, InPlace(out.data()), n,
                                          StoreMode::kAssign}}})
                .ok());
        values.insert(values.end(), out.begin(), out.end());
      }
    }
    return values;
  }

  int64_t n;
  int64_t k;
  int64_t x_rows;
  std::vector<MatmulWeights> weights[2];  // [output][expert]
  std::vector<float> x;
};

class ExpertMatmulTest : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped()) return;
    streams_.push_back(NewStream(1));
    if (GetParam().device != DeviceKind::kCuda) {
      streams_.push_back(NewStream(3));
    }
  }

  void ExpectEachItemsOwn(const Problem& problem,
                          const std::vector<int32_t>* rows,
                          const std::vector<ExpertGroup>& groups,
                          Compute compute, const std::string& what) {
    for (int output = 0; output < 2; ++output) {
      const std::vector<float> expected =
          problem.Expected(rows, groups, compute, output);
      for (const auto& stream : streams_) {
        ASSERT_TRUE(SameBits(
            problem.Run(*stream, rows, groups, compute, output), expected))
            << what << ", output " << output
            << (compute == Compute::kQ8 ? " q8" : " f32");
      }
    }
  }

  std::vector<std::unique_ptr<Stream>> streams_;
};
INSTANTIATE_TEST_SUITE_P(Backends, ExpertMatmulTest,
                         testing::ValuesIn(FastBackends()), NameOfBackend);

// An item has the bits of its row alone, for one row with several experts, and
// for rows that share some. Outputs are no whole panels.
TEST_P(ExpertMatmulTest, AnItemIsItsRowsProduct) {
  const std::vector<std::pair<DType, DType>> types = {
      {DType::kQ4_K, DType::kQ6_K},
      {DType::kF32, DType::kF16},
      {DType::kQ8_0, DType::kBF16}};
  for (const auto& [first, second] : types) {
    const Problem problem(first, second, /*outputs=*/17, /*columns=*/256,
                          /*rows_of_x=*/15);
    const std::vector<int32_t> same_row = {3, 3, 3};
    const std::vector<ExpertGroup> one_each = {{0, 0, 1}, {2, 1, 2}, {4, 2, 3}};
    std::vector<int32_t> rows = {4, 0, 4};
    for (int32_t row = 14; row >= 0; --row) rows.push_back(row);
    const std::vector<ExpertGroup> uneven = {{1, 0, 2}, {2, 2, 3}, {3, 3, 18}};
    for (const Compute compute : {Compute::kQ8, Compute::kF32}) {
      const std::string name(InfoOf(first).name);
      ExpectEachItemsOwn(problem, &same_row, one_each, compute, name + " one");
      ExpectEachItemsOwn(problem, &rows, uneven, compute, name + " many");
      ExpectEachItemsOwn(problem, nullptr, {{0, 0, 1}, {1, 1, 14}, {4, 14, 15}},
                         compute, name + " own");
    }
  }
}

// So many items of one expert that they are multiplied in several parts.
TEST_P(ExpertMatmulTest, AGroupOfManyItems) {
  if (TriesFew()) GTEST_SKIP() << "the CPU's parts";
  const Problem problem(DType::kF32, DType::kQ8_0, 16, 4096, 50);
  std::vector<int32_t> rows(50);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] = static_cast<int32_t>(i * 7 % 50);
  }
  ExpectEachItemsOwn(problem, &rows, {{1, 0, 49}, {2, 49, 50}}, Compute::kF32,
                     "many");
}

TEST_P(ExpertMatmulTest, RefusesWrongParameters) {
  Stream& stream = *streams_.front();
  const Problem problem(DType::kF32, DType::kF32, 16, 32, 2);
  const PackedMatrix w = problem.Packed(stream, 0);
  OnDevice<float> x(stream, problem.x);
  OnDevice<float> out(stream, std::vector<float>(64));
  const std::vector<int32_t> rows = {0, 1};
  const ExpertGroup groups[] = {{0, 0, 1}, {4, 1, 2}};
  const ExpertMatmulParams good = {.x = x.data(),
                                   .x_stride = 35,
                                   .x_rows = 2,
                                   .rows = rows.data(),
                                   .items = 2,
                                   .groups = groups,
                                   .num_groups = 2,
                                   .n = 16,
                                   .compute = Compute::kQ8,
                                   .num_outputs = 1,
                                   .outputs = {{&w, out.data(), 16}},
                                   .room = out.data()};
  const auto code = [&](auto change) {
    ExpertMatmulParams p = good;
    change(p);
    return CodeOf(ExpertMatmul(stream, p));
  };
  using P = ExpertMatmulParams;
  EXPECT_EQ(code([](P& p) { p.num_outputs = 3; }), "invalid_sizes");
  EXPECT_EQ(code([](P& p) { p.items = -1; }), "invalid_sizes");
  EXPECT_EQ(code([](P& p) { p.x_stride = 31; }), "invalid_sizes");
  EXPECT_EQ(code([](P& p) { p.outputs[0].out_stride = 15; }), "invalid_sizes");
  EXPECT_EQ(code([](P& p) { p.outputs[0].weights = nullptr; }),
            "invalid_argument");
  EXPECT_EQ(code([](P& p) { p.room = nullptr; }), "invalid_argument");
  EXPECT_EQ(code([](P& p) { p.x_rows = 1; }), "invalid_argument");
  EXPECT_EQ(code([](P& p) {
              p.rows = nullptr;
              p.x_rows = 1;
            }),
            "invalid_sizes");
  EXPECT_EQ(code([](P& p) { p.items = 3; }), "invalid_argument");
  EXPECT_EQ(code([](P& p) { p.num_groups = 1; }), "invalid_argument");
  EXPECT_EQ(code([](P& p) { p.n = 32; }), "invalid_sizes");
  for (const auto& wrong :
       std::vector<std::vector<ExpertGroup>>{
           {{5, 0, 2}},              // no such expert
           {{-1, 0, 2}},             // no expert
           {{0, 0, 1}, {1, 0, 2}},   // twice
           {{0, 0, 0}, {1, 0, 2}},   // empty
           {{0, 0, 1}, {1, 1, 3}}})  // beyond the items
  {
    EXPECT_EQ(code([&](P& p) {
                p.groups = wrong.data();
                p.num_groups = std::ssize(wrong);
              }),
              "invalid_argument");
  }
}

}  // namespace
}  // namespace tiercel::expert_matmul_test
