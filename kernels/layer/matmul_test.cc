#include "kernels/layer/matmul.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/layer/packed_layout.h"
#include "kernels/layer/rms_norm.h"
#include "kernels/layer/swiglu.h"
#include "kernels/layer/testing.h"
#include "kernels/number/half.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"

namespace tiercel::matmul_test {
namespace {

std::vector<int64_t> EveryK(DType type) {
  switch (InfoOf(type).block_elements) {
    case 1:
      return {1, 2, 31, 104, 577};
    case 32:
      return {32, 64, 96, 576};
    default:
      return {256, 512, 768};
  }
}

class MatmulTest : public BackendTest {
 protected:
  Stream& Fast(int threads) {
    std::unique_ptr<Stream>& stream = fast_[threads];
    if (stream == nullptr) stream = NewStream(threads);
    return *stream;
  }
  Stream& Reference() { return *reference_; }
  // Rows [0, rows) by the reference, computed once for all backends.
  const std::vector<float>& Expected(const MatmulProblem& problem,
                                     int64_t rows) {
    static std::map<std::pair<std::string, int64_t>, std::vector<float>> known;
    std::vector<float>& out = known[{problem.Key(), rows}];
    if (out.empty()) out = problem.Run(Reference(), 0, rows);
    return out;
  }
  const std::vector<float>& Expected(const MatmulProblem& problem) {
    return Expected(problem, problem.rows);
  }

 private:
  std::map<int, std::unique_ptr<Stream>> fast_;
  std::unique_ptr<Stream> reference_ = MakeStream(DeviceKind::kRef);
};

INSTANTIATE_TEST_SUITE_P(Backends, MatmulTest,
                         testing::ValuesIn(FastBackends()), NameOfBackend);

// The arithmetic is specified to the last bit, so every body has the
// reference's bits. The cases alternate between flags and numbers of threads.
TEST_P(MatmulTest, HasTheReferencesBits) {
  unsigned turn = 0;
  for (const DType type : EveryType()) {
    for (const int64_t k : Some(EveryK(type))) {
      for (const int64_t n :
           Fewer(InShort({1, 15, 16, 17, 48, 100}, {1, 17, 100}), {17, 100})) {
        for (const Compute compute : {Compute::kQ8, Compute::kF32}) {
          MatmulProblem problem(
              RandomWeights(type, n, k, turn), TriesLess() ? 13 : 64,
              {.compute = compute, .x_gap = n % 2 == 0 ? 4 : 3});
          for (const int64_t rows :
               Fewer(InShort({1, 2, 7, 8, 13, 64}, {1, 7, 64}), {1, 13})) {
            ++turn;
            problem.options.bias = turn % 2 == 0;
            problem.options.store =
                turn / 2 % 2 == 0 ? StoreMode::kAssign : StoreMode::kAdd;
            problem.options.scale = turn / 4 % 2 == 0 ? 1.0f : 0.22f;
            const int threads = static_cast<int>(1 + turn % 3);
            ASSERT_TRUE(SameBits(problem.Run(Fast(threads), 0, rows),
                                 Expected(problem, rows)))
                << InfoOf(type).name << " k=" << k << " n=" << n
                << " rows=" << rows << " threads=" << threads
                << (compute == Compute::kQ8 ? " q8" : " f32");
          }
        }
      }
    }
  }
}

// All tile heights are used, also with rows that do not fill a tile.
TEST_P(MatmulTest, EveryRowCountHasTheReferencesBits) {
  for (const DType type : EveryType()) {
    for (const Compute compute : {Compute::kQ8, Compute::kF32}) {
      const MatmulProblem problem(RandomWeights(type, 72, 256, 1), 64,
                                  {compute, true, StoreMode::kAdd});
      const std::vector<float>& all = Expected(problem);
      const size_t stride = all.size() / 64;
      for (int64_t rows = 1; rows <= 64;
           rows += rows < 26 ? (TriesFew() ? 5 : 1) : 19) {
        ASSERT_TRUE(SameBits(problem.Run(Fast(2), 0, rows),
                             {all.begin(), all.begin() + rows * stride}))
            << InfoOf(type).name << " rows=" << rows;
      }
    }
  }
}

// A GPU has other kernels for one row, which copy in stages. Lengths are around
// the size of a stage, also such that do not fill the last one.
TEST_P(MatmulTest, OneRowOfAnyLengthHasTheReferencesBits) {
  for (const DType type : EveryType()) {
    const int64_t block = InfoOf(type).block_elements;
    for (const int64_t steps : {5, 39, 40, 41, 137}) {
      const int64_t least = steps * (IsQuantised(type) ? 32 : 8);
      const int64_t k = (least + block - 1) / block * block;
      const MatmulProblem problem(RandomWeights(type, 35, k, 1), 1, {});
      ASSERT_TRUE(SameBits(problem.Run(Fast(2)), Expected(problem)))
          << InfoOf(type).name << " k=" << k;
    }
  }
  // If there are many outputs, each has fewer stages.
  const MatmulProblem wide(RandomWeights(DType::kF16, 8200, 456, 1), 1, {});
  ASSERT_TRUE(SameBits(wide.Run(Fast(2)), Expected(wide)));
}

// On a GPU there are several tiles of outputs of each height, and neither the
// last tiles nor the last stages are full.
TEST_P(MatmulTest, TilesOfFloatsHaveTheReferencesBits) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const int64_t k : {40, 328}) {
      const MatmulProblem problem(RandomWeights(type, 150, k, 1), 130, {});
      const std::vector<float>& expected = Expected(problem);
      const size_t stride = expected.size() / 130;
      for (const int64_t rows : {2, 9, 25, 49, 130}) {
        ASSERT_TRUE(
            SameBits(problem.Run(Fast(2), 0, rows),
                     {expected.begin(),
                      expected.begin() + static_cast<int64_t>(stride) * rows}))
            << InfoOf(type).name << " k=" << k << " rows=" << rows;
      }
    }
  }
  // There are many columns.
  const MatmulProblem wide(RandomWeights(DType::kF16, 10200, 136, 1), 25, {});
  ASSERT_TRUE(SameBits(wide.Run(Fast(2)), Expected(wide)));
}

// Rows are so long and many that they are divided into groups and split among
// threads.
TEST_P(MatmulTest, GroupsOfRowsChangeNothing) {
  if (TriesFew() && GetParam().isa != SupportedIsas().back()) GTEST_SKIP();
  for (const DType type : {DType::kQ4_1, DType::kF16}) {
    for (const Compute compute : {Compute::kQ8, Compute::kF32}) {
      if (TriesFew() && compute != Compute::kQ8) continue;
      const int64_t n = TriesFew() ? 2 : 20;
      const MatmulProblem problem(RandomWeights(type, n, 2048, 1), 409,
                                  {compute});
      const std::vector<float>& expected = Expected(problem);
      for (const int threads : Threads({1, 3})) {
        ASSERT_TRUE(SameBits(problem.Run(Fast(threads)), expected))
            << InfoOf(type).name << " threads=" << threads;
      }
    }
  }
}

TEST_P(MatmulTest, ThreeOutputsAreThreeMatmuls) {
  for (const Compute compute : {Compute::kQ8, Compute::kF32}) {
    for (const int64_t rows : {1, 5, 40}) {
      const MatmulProblem problems[] = {
          {RandomWeights(DType::kQ4_K, 80, 256, 1), rows, {compute, true}},
          {RandomWeights(DType::kF16, 33, 256, 2), rows, {compute}},
          {RandomWeights(DType::kQ6_K, 48, 256, 3),
           rows,
           {compute, false, StoreMode::kAdd}}};
      Stream& stream = Fast(2);
      OnDevice<float> x(stream, problems[0].x);
      MatmulParams p = {};
      p.x = x.data();
      p.x_stride = 256 + problems[0].options.x_gap;
      p.rows = rows;
      p.compute = compute;
      p.num_outputs = 3;
      PackedMatrix weights[3];
      std::vector<OnDevice<float>> outs;
      std::vector<OnDevice<float>> biases;
      for (size_t i = 0; i < 3; ++i) {
        const MatmulProblem& problem = problems[i];
        weights[i] = problem.weights.PackedFor(stream);
        outs.emplace_back(
            stream, problem.options.store == StoreMode::kAdd
                        ? problem.before
                        : std::vector<float>(problem.before.size(), kPoison));
        biases.emplace_back(stream, problem.bias);
      }
      for (size_t i = 0; i < 3; ++i) {
        p.outputs[i] = {&weights[i],
                        problems[i].options.bias ? biases[i].data() : nullptr,
                        outs[i].data(), weights[i].rows() + MatmulProblem::kGap,
                        problems[i].options.store};
      }
      const absl::Status status = Matmul(stream, p);
      ASSERT_TRUE(status.ok()) << status;
      for (size_t i = 0; i < 3; ++i) {
        EXPECT_TRUE(SameBits(outs[i].Read(), problems[i].Run(Reference())))
            << "output " << i << ", rows=" << rows;
      }
    }
  }
}

// A product with a prologue, computed by one call or by a call for each.
class WithPrologue {
 public:
  WithPrologue(std::vector<MatmulWeights> weights, int64_t rows,
               Compute compute, MatmulPrologue::Op op)
      : weights_(std::move(weights)),
        rows_(rows),
        k_(weights_[0].cols()),
        x_stride_(op == MatmulPrologue::Op::kNorm ? k_ + 4 : k_),
        compute_(compute),
        op_(op),
        x_(RandomX(rows, x_stride_, 21)),
        with_(RandomX(op == MatmulPrologue::Op::kNorm ? 1 : rows, k_, 22)) {}

  std::vector<std::vector<float>> InOneCall(Stream& stream) const {
    OnDevice<float> x(stream, x_);
    OnDevice<float> with(stream, with_);
    OnDevice<float> room(stream, Poison(rows_ * k_));
    const auto products = Multiply(
        stream, x.data(), x_stride_,
        {.op = op_, .with = with.data(), .eps = kEps, .room = room.data()});
    EXPECT_EQ(x.Read(), x_);
    return products;
  }

  std::vector<std::vector<float>> InTwo(Stream& stream) const {
    OnDevice<float> x(stream, x_);
    OnDevice<float> with(stream, with_);
    OnDevice<float> done(stream, Poison(rows_ * k_));
    const absl::Status status =
        op_ == MatmulPrologue::Op::kGate
            ? Swiglu(stream, {x.data(), with.data(), rows_, k_, done.data()})
            : RmsNorm(stream, {x.data(), x_stride_, with.data(), kEps, rows_, 1,
                               static_cast<int>(k_), done.data(), k_});
    EXPECT_TRUE(status.ok()) << status;
    return Multiply(stream, done.data(), k_, {});
  }

 private:
  static constexpr float kEps = 1e-5f;

  static std::vector<float> Poison(int64_t size) {
    return std::vector<float>(static_cast<size_t>(size), kPoison);
  }

  std::vector<std::vector<float>> Multiply(
      Stream& stream, DevicePtr<const float> x, int64_t x_stride,
      const MatmulPrologue& prologue) const {
    MatmulParams p = {};
    p.x = x;
    p.x_stride = x_stride;
    p.rows = rows_;
    p.compute = compute_;
    p.num_outputs = static_cast<int>(weights_.size());
    p.prologue = prologue;
    std::vector<PackedMatrix> packed(weights_.size());
    std::vector<OnDevice<float>> outs;
    for (const MatmulWeights& w : weights_) {
      outs.emplace_back(stream, Poison(rows_ * w.rows()));
    }
    for (size_t i = 0; i < weights_.size(); ++i) {
      packed[i] = weights_[i].PackedFor(stream);
      p.outputs[i] = {&packed[i], nullptr, outs[i].data(), weights_[i].rows(),
                      StoreMode::kAssign};
    }
    const absl::Status status = Matmul(stream, p);
    EXPECT_TRUE(status.ok()) << status;
    std::vector<std::vector<float>> products;
    for (OnDevice<float>& out : outs) products.push_back(out.Read());
    return products;
  }

  std::vector<MatmulWeights> weights_;
  int64_t rows_;
  int64_t k_;
  int64_t x_stride_;
  Compute compute_;
  MatmulPrologue::Op op_;
  std::vector<float> x_;
  std::vector<float> with_;
};

// A GPU norms or gates while it quantises, if all weights are quantised. 96
// leaves half of the last pair of blocks, and 2,112 most of the second turn of
// a GPU block's threads.
TEST_P(MatmulTest, APrologueHasTheBitsOfItsOp) {
  const struct {
    std::vector<DType> types;
    std::vector<int64_t> ks;
  } cases[] = {{{DType::kQ4_1}, {32, 96, 1120, 2112}},
               {{DType::kQ4_K, DType::kQ6_K}, {256, 1280}},
               {{DType::kQ8_0, DType::kF16, DType::kQ8_0}, {96}},
               {{DType::kF32}, {31}}};
  for (const auto op : {MatmulPrologue::Op::kNorm, MatmulPrologue::Op::kGate}) {
    for (const auto& c : cases) {
      for (const int64_t k : c.ks) {
        for (const int64_t rows : {1, 9, 40}) {
          if (k > 1000 && rows > 9) continue;
          for (const Compute compute : {Compute::kQ8, Compute::kF32}) {
            std::vector<MatmulWeights> weights;
            for (const DType type : c.types) {
              weights.push_back(RandomWeights(type, 20, k, 1));
            }
            const WithPrologue problem(std::move(weights), rows, compute, op);
            const auto got = problem.InOneCall(Fast(2));
            const auto expected = problem.InTwo(Reference());
            for (size_t i = 0; i < got.size(); ++i) {
              ASSERT_TRUE(SameBits(got[i], expected[i]))
                  << InfoOf(c.types[i]).name << " k=" << k << " rows=" << rows
                  << (op == MatmulPrologue::Op::kNorm ? " norm" : " gate");
            }
          }
        }
      }
    }
  }
}

// A NaN or an infinity in a row of x makes all outputs of that row not finite,
// and no others.
TEST_P(MatmulTest, WhatIsNotFiniteShows) {
  const float bad_values[] = {std::numeric_limits<float>::quiet_NaN(),
                              std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::infinity()};
  for (const DType type : EveryType()) {
    for (const Compute compute : {Compute::kQ8, Compute::kF32}) {
      MatmulProblem problem(RandomWeights(type, 40, 256, 1), 15, {compute});
      const std::vector<float> clean = problem.Run(Fast(1));
      for (const float bad : bad_values) {
        MatmulProblem broken(RandomWeights(type, 40, 256, 1), 15, {compute});
        const int64_t at = std::isnan(bad) ? 232 : 200;
        broken.x[static_cast<size_t>(13 * (256 + broken.options.x_gap) + at)] =
            bad;
        const std::vector<float> out = broken.Run(Fast(1));
        for (size_t i = 0; i < out.size(); ++i) {
          const size_t row = i / (40 + MatmulProblem::kGap);
          const size_t column = i % (40 + MatmulProblem::kGap);
          if (column >= 40) continue;
          if (row == 13) {
            ASSERT_FALSE(std::isfinite(out[i])) << InfoOf(type).name;
          } else {
            ASSERT_EQ(out[i], clean[i]) << InfoOf(type).name;
          }
        }
      }
    }
  }
}

// Blocks of zeros, and of subnormals whose scale is coarse or zero, are
// multiplied by weights large enough to make errors visible.
TEST_P(MatmulTest, ExtremeActivations) {
  std::vector<std::byte> rows(17 * 3 * 34);
  std::mt19937 random(1);
  for (std::byte& byte : rows) byte = static_cast<std::byte>(random());
  const uint16_t d = F16FromF32(32768.0f);
  for (size_t at = 0; at < rows.size(); at += 34) {
    std::memcpy(&rows[at], &d, sizeof(d));
  }
  MatmulProblem problem({DType::kQ8_0, 17, 96, std::move(rows)}, 9, {});
  for (const float value :
       {0.0f, -0.0f, 1.0f, 0x1p-149f, 63 * 0x1p-149f, 64 * 0x1p-149f,
        190 * 0x1p-149f, -190 * 0x1p-149f, 0x1p-126f, 0x1p100f}) {
    for (size_t i = 0; i < problem.x.size(); ++i) {
      problem.x[i] = i % 3 == 0 ? value : i % 3 == 1 ? value / 2 : 0.0f;
    }
    EXPECT_TRUE(SameBits(problem.Run(Fast(1)), problem.Run(Reference())))
        << value;
  }
}

// ---- The reference itself ----

TEST(MatmulReferenceTest, ScaleThatRoundsBest) {
  PackedMatrix weights = *PackedMatrix::Create(DType::kQ4_0, 1, 32);
  std::vector<std::byte> row(18);
  const uint16_t d = F16FromF32(1.0f);
  std::memcpy(&row[0], &d, 2);
  row[2] = std::byte{0xb9};        // weight 0: 9 - 8 = 1; weight 16: 11 - 8 = 3
  weights.PackRow(0, row.data());  // the others: -8
  std::vector<float> x(32, 0.0f);
  x[0] = 254.0f;
  x[16] = 5.0f;  // error 1 with d_x = 254 / 127, 0.90 with 254 / 124
  float out = kPoison;
  MatmulParams p = {InPlace(x.data()), 32, 1, Compute::kQ8, 1, {}};
  p.outputs[0] = {&weights, nullptr, InPlace(&out), 1, StoreMode::kAssign};
  ASSERT_TRUE(Matmul(*MakeStream(DeviceKind::kRef), p).ok());
  // 124 * 1 + 2 * 3 = 130
  EXPECT_EQ(out, 130 * (254.0f / 124));
}

TEST(MatmulReferenceTest, HandWorkedQ8) {
  PackedMatrix weights = *PackedMatrix::Create(DType::kQ4_1, 2, 64);
  std::vector<std::byte> row(40);
  const uint16_t d = F16FromF32(0.5f), m = F16FromF32(-2.0f);
  std::memcpy(&row[0], &d, 2);
  std::memcpy(&row[2], &m, 2);
  row[4] = std::byte{0x3a};        // weight 0: 10/2 - 2 = 3; weight 16: -0.5
  weights.PackRow(1, row.data());  // the other codes of block 0: -2; block 1: 0
  std::vector<float> x(64, 0.0f);
  x[0] = 254.0f;    // d_x = 2, code 127
  x[16] = -4.9f;    // code -2 (-2.45)
  x[1] = 5.0f;      // code 2: 2.5 is a tie, to even
  x[40] = 1000.0f;  // meets weights of 0
  // These are multiples of d_x, each with its opposite, so that 254 / 127
  // rounds best.
  x[2] = 126.0f;
  x[3] = -126.0f;
  x[4] = 62.0f;
  x[5] = -62.0f;
  float out[2] = {kPoison, kPoison};
  const float bias[2] = {0.25f, 0.5f};
  MatmulParams p = {InPlace(x.data()), 64, 1, Compute::kQ8, 1, {}};
  p.outputs[0] = {&weights, InPlace(bias), InPlace(out), 2, StoreMode::kAssign};
  const std::unique_ptr<Stream> stream = MakeStream(DeviceKind::kRef);
  ASSERT_TRUE(Matmul(*stream, p).ok());
  EXPECT_EQ(out[0], 0.25f);
  // dot = 10 * 127 - 3 * 2 = 1264, sum = 127 + 2 - 2 = 127.
  EXPECT_EQ(out[1], 1264 * 0.5f * 2 - 2.0f * 127 * 2 + 0.5f);

  p.outputs[0].store = StoreMode::kAdd;
  ASSERT_TRUE(Matmul(*stream, p).ok());
  EXPECT_EQ(out[0], 0.5f);
  EXPECT_EQ(out[1], 2 * (1264 * 0.5f * 2 - 2.0f * 127 * 2 + 0.5f));

  p.scale = -0.5f;
  ASSERT_TRUE(Matmul(*stream, p).ok());
  EXPECT_EQ(out[0], 0.375f);
  EXPECT_EQ(out[1], 1.5f * (1264 * 0.5f * 2 - 2.0f * 127 * 2 + 0.5f));

  p.scale = 1;
  p.outputs[0].store = StoreMode::kAssign;
  p.compute = Compute::kF32;
  ASSERT_TRUE(Matmul(*stream, p).ok());
  EXPECT_EQ(out[1], 254 * 3.0f + 5.0f * -2.0f + -4.9f * -0.5f + 0.5f);
}

// Compares with double: the error is at most k roundings of the running sum
// and, with kQ8, half a code for every activation.
TEST(MatmulReferenceTest, IsNearTheExactProduct) {
  const std::unique_ptr<Stream> stream = MakeStream(DeviceKind::kRef);
  for (const DType type : EveryType()) {
    for (const Compute compute : {Compute::kQ8, Compute::kF32}) {
      const int64_t k = 768, n = 20, rows = 3;
      const MatmulProblem problem(RandomWeights(type, n, k, 4), rows,
                                  {compute, true, StoreMode::kAdd});
      const std::vector<float> out = problem.Run(*stream);
      const bool q8 = compute == Compute::kQ8 && IsQuantised(type);
      std::vector<float> w(static_cast<size_t>(k));
      const PackedMatrix weights = problem.weights.Packed();
      for (int64_t i = 0; i < n; ++i) {
        weights.UnpackRow(i, w.data());
        for (int64_t r = 0; r < rows; ++r) {
          const float* x = problem.x.data() + r * (k + problem.options.x_gap);
          const auto at =
              static_cast<size_t>(r * (n + MatmulProblem::kGap) + i);
          double exact = problem.bias[static_cast<size_t>(i)];
          exact += problem.before[at];
          double magnitude = std::abs(problem.bias[static_cast<size_t>(i)]) +
                             std::abs(problem.before[at]);
          double codes = 0;
          for (int64_t j = 0; j < k; ++j) {
            const double weight = w[static_cast<size_t>(j)];
            double block_max = 0;
            for (int64_t b = j / 32 * 32; b < j / 32 * 32 + 32; ++b) {
              block_max = std::max<double>(block_max, std::abs(x[b]));
            }
            exact += weight * x[j];
            magnitude += std::abs(weight) * block_max;
            codes += std::abs(weight) * block_max / 127 / 2;
          }
          double tolerance = (static_cast<double>(k) + 4) * 0x1p-24 * magnitude;
          if (q8) tolerance += codes;
          // The terms of d and m nearly cancel in w, but have their own errors.
          if (q8) tolerance *= 1.001;
          ASSERT_NEAR(out[at], exact, tolerance) << InfoOf(type).name;
        }
      }
    }
  }
}

TEST(MatmulEntryTest, NoRowsIsNothing) {
  const PackedMatrix weights = RandomWeights(DType::kF32, 4, 8, 1).Packed();
  float out = 7.0f;
  MatmulParams p = {nullptr, 8, 0, Compute::kQ8, 1, {}};
  p.outputs[0] = {&weights, nullptr, InPlace(&out), 4, StoreMode::kAssign};
  for (const DeviceKind device : {DeviceKind::kCpu, DeviceKind::kRef}) {
    EXPECT_TRUE(Matmul(*MakeStream(device), p).ok());
  }
  EXPECT_EQ(out, 7.0f);
}

TEST(MatmulEntryTest, RefusalsNameTheFieldTheValueAndTheNeed) {
  const PackedMatrix weights = RandomWeights(DType::kF32, 4, 8, 1).Packed();
  const PackedMatrix longer = RandomWeights(DType::kF32, 4, 9, 1).Packed();
  const PackedMatrix for_gpu =
      RandomWeights(DType::kF32, 4, 8, 1).Packed(PanelOrder::kFragments);
  const PackedMatrix empty;
  std::vector<float> x(9), out(8);
  MatmulParams good = {InPlace(x.data()), 8, 1, Compute::kQ8, 2, {}};
  good.outputs[0] = {&weights, nullptr, InPlace(out.data()), 4,
                     StoreMode::kAssign};
  good.outputs[1] = {&weights, nullptr, InPlace(out.data()) + 4, 4,
                     StoreMode::kAssign};
  const std::unique_ptr<Stream> stream = MakeStream(DeviceKind::kCpu);
  ASSERT_TRUE(Matmul(*stream, good).ok());

  const auto expect = [&](const char* code, const char* message, auto change) {
    MatmulParams p = good;
    change(p);
    const absl::Status status = Matmul(*stream, p);
    EXPECT_EQ(CodeOf(status), code) << status;
    EXPECT_EQ(std::string(status.message()), message);
  };
  expect("invalid_sizes", "Matmul: num_outputs=0; need 1 to 3",
         [](MatmulParams& p) { p.num_outputs = 0; });
  expect("invalid_sizes", "Matmul: num_outputs=4; need 1 to 3",
         [](MatmulParams& p) { p.num_outputs = 4; });
  expect("invalid_sizes", "Matmul: rows=-1; need 0 or more",
         [](MatmulParams& p) { p.rows = -1; });
  expect("invalid_sizes", "Matmul: x_stride=7; need at least k=8",
         [](MatmulParams& p) { p.x_stride = 7; });
  const MatmulPrologue norm = {.op = MatmulPrologue::Op::kNorm,
                               .with = InPlace(x.data()),
                               .eps = 1.0f,
                               .room = InPlace(x.data())};
  expect("invalid_sizes", "Matmul: prologue.eps=0; need eps > 0",
         [&](MatmulParams& p) {
           p.prologue = norm;
           p.prologue.eps = 0.0f;
         });
  expect("invalid_argument", "Matmul: prologue.with is null",
         [&](MatmulParams& p) {
           p.prologue = norm;
           p.prologue.with = nullptr;
         });
  expect("invalid_argument", "Matmul: prologue.room is null",
         [&](MatmulParams& p) {
           p.prologue = norm;
           p.prologue.room = nullptr;
         });
  expect("invalid_sizes", "Matmul: x_stride=9; a gate needs k=8",
         [&](MatmulParams& p) {
           p.x_stride = 9;
           p.prologue = norm;
           p.prologue.op = MatmulPrologue::Op::kGate;
         });
  expect("invalid_argument", "Matmul: x is null",
         [](MatmulParams& p) { p.x = nullptr; });
  expect("invalid_argument", "Matmul: outputs[0].weights is null",
         [](MatmulParams& p) { p.outputs[0].weights = nullptr; });
  expect("invalid_argument", "Matmul: outputs[1].weights is null",
         [&](MatmulParams& p) { p.outputs[1].weights = &empty; });
  expect("invalid_argument",
         "Matmul: outputs[1].weights are packed for another kind of device",
         [&](MatmulParams& p) { p.outputs[1].weights = &for_gpu; });
  expect("invalid_sizes",
         "Matmul: outputs[1].weights has k=9; need k=8 like outputs[0]",
         [&](MatmulParams& p) { p.outputs[1].weights = &longer; });
  expect("invalid_argument", "Matmul: outputs[1].out is null",
         [](MatmulParams& p) { p.outputs[1].out = nullptr; });
  expect("invalid_sizes", "Matmul: outputs[0].out_stride=3; need at least n=4",
         [](MatmulParams& p) { p.outputs[0].out_stride = 3; });
}

}  // namespace
}  // namespace tiercel::matmul_test
