// Products of prompts by a library, which a kernel simulates on the hosted
// device: chains of float32 over x as the library gets it.

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/device/cuda/blas_lt.h"
#include "kernels/device/cuda/blas_lt_for_test.h"
#include "kernels/device/device_lang.h"
#include "kernels/layer/matmul.h"
#include "kernels/number/half.h"
#include "kernels/system/faults.h"
#include "kernels/system/testing.h"
#include "tests/setup/draws.h"

namespace tiercel::matmul_blas_test {
namespace {

constexpr int64_t kK = 64;
constexpr int64_t kStride = kK + 3;

float FloatOf(int type, uint16_t bits) {
  return type == blas_lt::kTypeF16 ? F32FromF16(bits) : F32FromBf16(bits);
}

struct MultiplyRows {
  static constexpr int kMaxThreads = 32;
  struct Shared {};
  FakeBlas::Call call;

  void operator()(const Thread& t, Shared&) const {
    const auto* w = static_cast<const uint16_t*>(call.a);
    const auto* x = static_cast<const uint16_t*>(call.b);
    auto* const out = static_cast<float*>(call.d);
    const auto n = static_cast<int64_t>(call.d_layout.rows);
    const auto rows = static_cast<int64_t>(call.d_layout.columns);
    const auto k = static_cast<int64_t>(call.a_layout.rows);
    const int type = call.a_layout.type;
    for (int64_t i = t.index; i < rows * n; i += t.count) {
      float sum = 0.0f;
      for (int64_t j = 0; j < k; ++j) {
        sum = std::fma(FloatOf(type, x[i / n * k + j]),
                       FloatOf(type, w[i % n * k + j]), sum);
      }
      out[i] = sum;
    }
  }
};

class MatmulBlasTest : public testing::Test {
 protected:
  void SetUp() override {
    fake_.multiply = [](const FakeBlas::Call& call) {
      return Launch(call.stream, {.threads = MultiplyRows::kMaxThreads},
                    MultiplyRows{call});
    };
    stream_->UseBlas(*BlasLt::Create(FakeBlas::Functions()));
  }

  // Weights [n, kK] with values around 1/8, for the op's stream.
  static PackedMatrix Weights(DType type, int64_t n, Stream& stream) {
    std::mt19937 random(static_cast<unsigned>(n));
    NormalFloats normal(0.0f, 0.125f);
    PackedMatrix packed = *PackedMatrix::Create(type, n, kK, SystemMemory(),
                                                PackedMatrix::OrderFor(stream));
    std::vector<std::byte> row(static_cast<size_t>(RowBytes(type, kK)));
    for (int64_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < static_cast<size_t>(kK); ++j) {
        const float value = normal(random);
        const uint16_t half =
            type == DType::kBF16 ? Bf16FromF32(value) : F16FromF32(value);
        if (type == DType::kF32) {
          std::memcpy(&row[4 * j], &value, 4);
        } else {
          std::memcpy(&row[2 * j], &half, 2);
        }
      }
      packed.PackRow(i, row.data());
    }
    return *packed.CopyTo(stream);
  }

  struct Outputs {
    std::vector<DType> types;
    int64_t n = 33;
    bool bias = false;
    StoreMode store = StoreMode::kAssign;
    float scale = 1.0f;
  };
  // Returns all outputs, with a gap after every row.
  static std::vector<float> Run(Stream& stream, const Outputs& o,
                                const std::vector<float>& x, int64_t rows) {
    OnDevice<float> in(stream, x);
    std::vector<float> added(static_cast<size_t>(o.n + 9));
    for (size_t i = 0; i < added.size(); ++i) {
      added[i] = static_cast<float>(i) / 7;
    }
    OnDevice<float> bias(stream, added);
    std::vector<PackedMatrix> weights;
    std::vector<OnDevice<float>> outs;
    MatmulParams p = {in.data(),
                      kStride,
                      rows,
                      Compute::kQ8,
                      static_cast<int>(o.types.size()),
                      {}};
    for (size_t i = 0; i < o.types.size(); ++i) {
      const int64_t n = o.n + static_cast<int64_t>(i);
      weights.push_back(Weights(o.types[i], n, stream));
      outs.emplace_back(stream, std::vector<float>(
                                    static_cast<size_t>(rows * (n + 2)), 0.5f));
    }
    p.scale = o.scale;
    for (size_t i = 0; i < o.types.size(); ++i) {
      p.outputs[i] = {&weights[i], o.bias ? bias.data() : nullptr,
                      outs[i].data(), weights[i].rows() + 2, o.store};
    }
    const absl::Status status = Matmul(stream, p);
    EXPECT_TRUE(status.ok()) << status;
    std::vector<float> all;
    for (OnDevice<float>& out : outs) {
      const std::vector<float> values = out.Read();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  static std::vector<float> RandomX(int64_t rows) {
    std::mt19937 random(5);
    NormalFloats normal;
    std::vector<float> x(static_cast<size_t>(rows * kStride));
    for (float& value : x) value = normal(random);
    return x;
  }
  static std::vector<float> Rounded(std::vector<float> x, DType type) {
    for (float& value : x) {
      value = type == DType::kF16 ? F32FromF16(F16FromF32(value))
                                  : F32FromBf16(Bf16FromF32(value));
    }
    return x;
  }

  FakeBlas fake_;  // first, so that it outlives the streams
  const std::unique_ptr<Stream> stream_ = MakeHostedStream(Order::kMixed);
  const std::unique_ptr<Stream> reference_ = MakeStream(DeviceKind::kRef);
};

TEST_F(MatmulBlasTest, PromptsGoToTheLibrary) {
  int turn = 0;
  for (const DType type : {DType::kF16, DType::kBF16}) {
    for (const int64_t rows : {64, 255, 256, 300}) {
      const std::vector<float> x = RandomX(rows);
      const Outputs outputs = {
          {type, type},
          33,
          turn % 2 == 0,
          turn / 2 % 2 == 0 ? StoreMode::kAssign : StoreMode::kAdd,
          turn % 3 == 0 ? 0.3f : 1.0f};
      ++turn;
      fake_.calls.clear();
      EXPECT_TRUE(SameBits(Run(*stream_, outputs, x, rows),
                           Run(*reference_, outputs, Rounded(x, type), rows)))
          << rows;
      EXPECT_EQ(fake_.calls["multiply"], rows > 256 ? 4 : 2);
    }
  }
}

// A row beyond the type's range is scaled by a power of two, which is exact, so
// that its products are right.
TEST_F(MatmulBlasTest, RowsBeyondTheRangeAreMadeToFit) {
  constexpr int64_t kRows = 70;
  constexpr int64_t kN = 33;
  constexpr int64_t kOutStride = kN + 2;
  for (const DType type : {DType::kF16, DType::kBF16}) {
    std::vector<float> x = RandomX(kRows);
    for (float& value : x) value += std::copysign(0.25f, value);  // whole bits
    const std::vector<float> products =
        Run(*reference_, {{type}, kN}, Rounded(x, type), kRows);
    const auto factor_of = [](int64_t row) {
      return row % 4 == 1 ? 0x1p20f : row % 4 == 2 ? 0x1p100f : 1.0f;
    };
    for (int64_t row = 0; row < kRows; ++row) {
      float* const own = x.data() + row * kStride;
      for (int64_t i = 0; i < kK; ++i) own[i] *= factor_of(row);
    }
    // F16 has numbers with this exponent, but would round this one to infinity.
    constexpr int64_t kEdge = 4;
    for (int64_t i = 0; i < kK; ++i) x[kEdge * kStride + i] = 65521.0f;
    // The greatest float; BF16 has as many exponents.
    constexpr int64_t kMost = 8;
    for (int64_t i = 0; i < kK; ++i) x[kMost * kStride + i] = 0.0f;
    x[kMost * kStride + 5] = std::numeric_limits<float>::max();
    constexpr int64_t kNan = 12;
    x[kNan * kStride + 7] = std::numeric_limits<float>::quiet_NaN();
    constexpr int64_t kInfinite = 16;
    x[kInfinite * kStride + 7] = std::numeric_limits<float>::infinity();

    const std::vector<float> exact =
        Run(*reference_, {{type}, kN, true}, x, kRows);
    const std::vector<float> got = Run(*stream_, {{type}, kN, true}, x, kRows);
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t i = 0; i < kN; ++i) {
        const auto at = static_cast<size_t>(row * kOutStride + i);
        if (row == kNan || row == kInfinite) {
          EXPECT_FALSE(std::isfinite(got[at])) << row;
        } else if (row == kEdge || row == kMost) {
          EXPECT_NEAR(got[at] / exact[at], 1.0f, 0x1p-8f) << row;
        } else {
          EXPECT_EQ(got[at],
                    products[at] * factor_of(row) + static_cast<float>(i) / 7)
              << row;
        }
      }
    }
  }
}

// A row has the same bits whatever the other rows are.
TEST_F(MatmulBlasTest, RowsDoNotDependOnEachOther) {
  const Outputs outputs = {{DType::kF16}};
  const std::vector<float> x = RandomX(300);
  const std::vector<float> all = Run(*stream_, outputs, x, 300);
  const std::vector<float> few =
      Run(*stream_, outputs,
          {x.begin() + 230 * kStride, x.begin() + 300 * kStride}, 70);
  EXPECT_TRUE(std::equal(few.begin(), few.end(), all.begin() + 230 * 35));
}

TEST_F(MatmulBlasTest, TheRestIsMultipliedByKernels) {
  const std::vector<float> x = RandomX(64);
  // There are too few rows, or the type is another.
  EXPECT_TRUE(SameBits(Run(*stream_, {{DType::kF16}}, x, 63),
                       Run(*reference_, {{DType::kF16}}, x, 63)));
  EXPECT_TRUE(SameBits(Run(*stream_, {{DType::kF32}}, x, 64),
                       Run(*reference_, {{DType::kF32}}, x, 64)));
  EXPECT_EQ(fake_.calls["multiply"], 0);
  // One call has outputs of both kinds.
  const std::vector<float> mixed =
      Run(*stream_, {{DType::kF32, DType::kF16}}, x, 64);
  const std::vector<float> alone = Run(*reference_, {{DType::kF32}}, x, 64);
  EXPECT_TRUE(std::equal(alone.begin(), alone.end(), mixed.begin()));
  EXPECT_EQ(fake_.calls["multiply"], 1);
}

TEST_F(MatmulBlasTest, WithoutALibraryBitsAreTheReferences) {
  stream_->UseBlas(nullptr);
  const std::vector<float> x = RandomX(64);
  EXPECT_TRUE(SameBits(Run(*stream_, {{DType::kF16}}, x, 64),
                       Run(*reference_, {{DType::kF16}}, x, 64)));
}

TEST_F(MatmulBlasTest, WhatTheLibraryRefusesIsAnError) {
  FailingCall refused(Callee::kBlasLt, "multiply", FakeBlas::kRefused);
  refused.Arm(1, FailAt::kAll);
  const PackedMatrix weights = Weights(DType::kF16, 33, *stream_);
  OnDevice<float> x(*stream_, RandomX(64));
  OnDevice<float> out(*stream_, std::vector<float>(64 * 33));
  MatmulParams p = {x.data(), kStride, 64, Compute::kQ8, 1, {}};
  p.outputs[0] = {&weights, nullptr, out.data(), 33, StoreMode::kAssign};
  EXPECT_EQ(Matmul(*stream_, p).message(),
            "cuBLASLt: Matmul ended with its status 13");
  refused.Disarm();
  EXPECT_TRUE(Matmul(*stream_, p).ok());
}

}  // namespace
}  // namespace tiercel::matmul_blas_test
