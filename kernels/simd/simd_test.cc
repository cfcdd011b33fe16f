#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/number/half.h"
#include "kernels/number/reference_math.h"
#include "kernels/simd/simd_test_body.h"
#include "kernels/system/testing.h"
#include "tests/setup/draws.h"

namespace tiercel::simd_test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr PerIsa<RunSimdFn*> kRunSimd = {portable::RunSimd, avx2::RunSimd,
                                         avx512::RunSimd, avx512vnni::RunSimd};

class SimdTest : public testing::TestWithParam<Isa> {
 protected:
  SimdTest() {
    std::mt19937 random(99);
    NormalFloats normal(0.0f, 10.0f);
    for (float& x : lanes_.a) x = normal(random);
    for (float& x : lanes_.b) x = normal(random);
    for (float& x : lanes_.c) x = normal(random);
  }

  void RunOp(SimdOp op) {
    for (float& x : lanes_.out) x = kPoison;
    kRunSimd[GetParam()](op, &lanes_);
  }
  // Runs `op` and compares every lane with expected(i), bit for bit.
  template <typename Expected>
  void ExpectLanes(SimdOp op, Expected expected) {
    RunOp(op);
    for (int i = 0; i < 16; ++i) {
      const float e = expected(i);
      if (std::isnan(e)) {
        EXPECT_TRUE(std::isnan(lanes_.out[i])) << static_cast<int>(op);
      } else {
        EXPECT_EQ(std::bit_cast<uint32_t>(lanes_.out[i]),
                  std::bit_cast<uint32_t>(e))
            << "op " << static_cast<int>(op) << " lane " << i << " of "
            << lanes_.a[i] << ", " << lanes_.b[i];
      }
    }
  }

  SimdLanes lanes_ = {};
};
INSTANTIATE_TEST_SUITE_P(Isas, SimdTest, testing::ValuesIn(SupportedIsas()),
                         NameOfIsa);

TEST_P(SimdTest, Arithmetic) {
  const float* a = lanes_.a;
  const float* b = lanes_.b;
  ExpectLanes(SimdOp::kAdd, [&](int i) { return a[i] + b[i]; });
  ExpectLanes(SimdOp::kSub, [&](int i) { return a[i] - b[i]; });
  ExpectLanes(SimdOp::kMul, [&](int i) { return a[i] * b[i]; });
  ExpectLanes(SimdOp::kDiv, [&](int i) { return a[i] / b[i]; });
  ExpectLanes(SimdOp::kAbs, [&](int i) { return std::fabs(a[i]); });
  lanes_.a[3] = -0.0f;
  lanes_.a[4] = -kInf;
  lanes_.a[5] = kPoison;
  ExpectLanes(SimdOp::kAbs, [&](int i) { return std::fabs(a[i]); });
}

TEST_P(SimdTest, SqrtRoundsOnce) {
  for (float& a : lanes_.a) a = std::fabs(a);
  lanes_.a[3] = -0.0f;
  lanes_.a[4] = kInf;
  lanes_.a[5] = kPoison;
  lanes_.a[6] = 1e-45f;
  ExpectLanes(SimdOp::kSqrt, [&](int i) { return std::sqrt(lanes_.a[i]); });
}

TEST_P(SimdTest, FmaRoundsOnce) {
  // (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24, which is lost if the product rounds.
  for (int i = 0; i < 16; ++i) {
    lanes_.a[i] = lanes_.b[i] = 1.0f + 0x1p-12f;
    lanes_.c[i] = -(1.0f + 0x1p-11f);
  }
  ExpectLanes(SimdOp::kFma, [](int) { return 0x1p-24f; });
}

TEST_P(SimdTest, MaxAndMinGiveTheSecondOperandForNan) {
  lanes_.a[1] = kPoison;
  lanes_.b[2] = kPoison;
  lanes_.a[3] = -kInf;
  lanes_.b[4] = kInf;
  const float* a = lanes_.a;
  const float* b = lanes_.b;
  ExpectLanes(SimdOp::kMax, [&](int i) { return a[i] > b[i] ? a[i] : b[i]; });
  ExpectLanes(SimdOp::kMin, [&](int i) { return a[i] < b[i] ? a[i] : b[i]; });
}

TEST_P(SimdTest, RoundsTiesToEven) {
  const float values[16] = {
      0.5f,   1.5f,    2.5f,       -0.5f, -1.5f, -2.5f,  0.49f,      0.51f,
      126.5f, -126.5f, 1234567.0f, 3.0f,  -3.2f, 1e-30f, 4194303.0f, 99.99999f};
  std::copy(values, values + 16, lanes_.a);
  RunOp(SimdOp::kRound);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(lanes_.out[i], std::nearbyint(values[i])) << values[i];
  }
}

TEST_P(SimdTest, ScalesByEveryPowerOfTwo) {
  for (int n = -126; n <= 127; ++n) {
    for (float& b : lanes_.b) b = static_cast<float>(n);
    for (int i = 0; i < 16; ++i) {
      lanes_.a[i] =
          (i % 2 == 0 ? 1.0f : -1.0f) * (0.7f + 0.08f * static_cast<float>(i));
    }
    ExpectLanes(SimdOp::kScaleByPowerOf2,
                [&](int i) { return std::ldexp(lanes_.a[i], n); });
  }
}

// Arguments are all multiples of 2^-10, and the ends.
TEST_P(SimdTest, ExpIsWithin1Em7) {
  double worst = 0;
  for (int block = -87 * 64; block < 88 * 64; ++block) {
    for (int i = 0; i < 16; ++i) {
      lanes_.a[i] = static_cast<float>(block * 16 + i) * 0x1p-10f + 1e-5f;
    }
    RunOp(SimdOp::kExp);
    for (int i = 0; i < 16; ++i) {
      const double exact = std::exp(static_cast<double>(lanes_.a[i]));
      worst = std::max(worst, std::fabs(lanes_.out[i] / exact - 1));
    }
    if (GetParam() == Isa::kPortable) continue;
    for (int i = 0; i < 16; ++i) {
      ASSERT_EQ(lanes_.out[i], ExpLane(lanes_.a[i])) << lanes_.a[i];
    }
  }
  EXPECT_LE(worst, 1e-7);
}

TEST_P(SimdTest, ExpAtTheEnds) {
  const float values[16] = {0.0f,   -0.0f,   88.0f,  -87.0f,  -87.5f, -88.0f,
                            -1e3f,  -1e30f,  -kInf,  kPoison, 1.0f,   -1.0f,
                            1e-30f, -1e-30f, 1e-45f, -86.9f};
  std::copy(values, values + 16, lanes_.a);
  RunOp(SimdOp::kExp);
  for (int i : {0, 1, 12, 13, 14}) EXPECT_EQ(lanes_.out[i], 1.0f) << i;
  EXPECT_NEAR(lanes_.out[2], std::exp(88.0), std::exp(88.0) * 1e-7);
  const double least = std::exp(-87.0);
  for (int i : {3, 4, 5, 6, 7, 8}) {
    EXPECT_NEAR(lanes_.out[i], least, least * 1e-7) << values[i];
  }
  EXPECT_TRUE(std::isnan(lanes_.out[9]));
}

// Arguments cover all powers of two, each in steps of 2^-9 of it, and are
// closer around 1.
TEST_P(SimdTest, LogIsWithin1Em7) {
  double worst = 0;
  const auto check = [&] {
    RunOp(SimdOp::kLog);
    for (int i = 0; i < 16; ++i) {
      const double exact = std::log(static_cast<double>(lanes_.a[i]));
      if (exact == 0) {
        EXPECT_EQ(lanes_.out[i], 0.0f);
      } else {
        worst = std::max(worst, std::fabs(lanes_.out[i] / exact - 1));
      }
      if (GetParam() == Isa::kPortable) continue;
      ASSERT_EQ(lanes_.out[i], LogLane(lanes_.a[i])) << lanes_.a[i];
    }
  };
  for (uint32_t first = 0x00800000u; first < 0x7f800000u; first += 16u << 14) {
    for (uint32_t i = 0; i < 16; ++i) {
      lanes_.a[i] = std::bit_cast<float>(first + (i << 14) + i * 777 % 4096);
    }
    check();
  }
  for (int32_t first = -0x4000; first < 0x4000; first += 16) {
    for (int32_t i = 0; i < 16; ++i) {
      lanes_.a[i] = std::bit_cast<float>(0x3f800000 + first + i);
    }
    check();
  }
  EXPECT_LE(worst, 1e-7);
}

TEST_P(SimdTest, PartialLoadsAndStores) {
  for (int n = 0; n <= 16; ++n) {
    lanes_.n = n;
    ExpectLanes(SimdOp::kLoadN,
                [&](int i) { return i < n ? lanes_.a[i] : 0.0f; });
    ExpectLanes(SimdOp::kStoreN,
                [&](int i) { return i < n ? lanes_.a[i] : kPoison; });
  }
}

// Another tree would give another sum: great lanes cancel only in pairs i, i +
// 8.
TEST_P(SimdTest, ReductionsFollowTheTree) {
  for (int round = 0; round < 100; ++round) {
    std::mt19937 random(static_cast<uint32_t>(round));
    NormalFloats normal(0.0f, 1e4f);
    float lane[16];
    float max = -kInf;
    for (int i = 0; i < 16; ++i) {
      lane[i] = lanes_.a[i] = normal(random);
      max = std::max(max, lane[i]);
    }
    const float sum = SumLanes(lane);
    ExpectLanes(SimdOp::kReduceAdd, [&](int) { return sum; });
    ExpectLanes(SimdOp::kReduceMax, [&](int) { return max; });
  }
}

TEST_P(SimdTest, Transposes) {
  RunOp(SimdOp::kTranspose);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) {
      EXPECT_EQ(lanes_.out[16 * i + j], lanes_.a[16 * j + i]) << i << " " << j;
    }
  }
}

TEST_P(SimdTest, EveryHalfLoads) {
  for (uint32_t first = 0; first < 0x10000u; first += 16) {
    for (uint32_t i = 0; i < 16; ++i) {
      lanes_.half[i] = static_cast<uint16_t>(first + i);
    }
    ExpectLanes(SimdOp::kLoadF16,
                [&](int i) { return F32FromF16(lanes_.half[i]); });
    ExpectLanes(SimdOp::kSet1F16,
                [&](int) { return F32FromF16(lanes_.half[0]); });
    ExpectLanes(SimdOp::kLoadBf16,
                [&](int i) { return F32FromBf16(lanes_.half[i]); });
  }
}

// Values are every half float, the middle to the next one, and the floats
// beside the middle.
TEST_P(SimdTest, StoredHalvesRoundLikeTheReference) {
  for (uint32_t half = 0; half < 0x7c00u; half += 4) {
    for (uint32_t i = 0; i < 4; ++i) {
      const float lower = F32FromF16(static_cast<uint16_t>(half + i));
      const float upper = half + i == 0x7bffu
                              ? 65536.0f
                              : F32FromF16(static_cast<uint16_t>(half + i + 1));
      const float middle = (lower + upper) / 2;
      float* a = lanes_.a + 4 * i;
      a[0] = -lower;
      a[1] = middle;
      a[2] = std::nextafter(middle, 0.0f);
      a[3] = std::nextafter(-middle, -kInf);
    }
    RunOp(SimdOp::kStoreF16);
    for (int i = 0; i < 16; ++i) {
      ASSERT_EQ(lanes_.half_out[i], F16FromF32(lanes_.a[i])) << lanes_.a[i];
    }
  }
  const float ends[16] = {kInf,     -kInf, 1e38f,   -1e38f, 65519.0f, 65520.0f,
                          0.0f,     -0.0f, 1e-45f,  1e-8f,  2.9e-8f,  3.1e-8f,
                          -3.1e-8f, 6e-5f, 6.2e-5f, kPoison};
  std::copy(ends, ends + 16, lanes_.a);
  RunOp(SimdOp::kStoreF16);
  for (int i = 0; i < 15; ++i) {
    EXPECT_EQ(lanes_.half_out[i], F16FromF32(ends[i])) << ends[i];
  }
  EXPECT_TRUE(std::isnan(F32FromF16(lanes_.half_out[15])));
}

TEST_P(SimdTest, EveryByteLoads) {
  for (int first = 0; first < 256; first += 16) {
    for (int i = 0; i < 16; ++i) {
      lanes_.u8[i] = static_cast<uint8_t>(first + i);
      lanes_.i8[i] = static_cast<int8_t>(first + i - 128);
    }
    ExpectLanes(SimdOp::kLoadI8,
                [&](int i) { return static_cast<float>(first + i - 128); });
    ExpectLanes(SimdOp::kLoadU8,
                [&](int i) { return static_cast<float>(first + i); });
    ExpectLanes(SimdOp::kLoadI4, [&](int i) {
      return static_cast<float>((first + i) % 16 - 8);
    });
    ExpectLanes(SimdOp::kLoadI4High, [&](int i) {
      return static_cast<float>((first + i) / 16 - 8);
    });
  }
}

}  // namespace
}  // namespace tiercel::simd_test
