// Checks that the matrix unit's step is as device_lang.h describes it, on which
// kernels and the host executor's step rely. On a new GPU this is the first
// test to run: if it fails, every product of quantised weights is wrong.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/device/matrix_step_for_test.h"
#include "kernels/number/half.h"
#include "kernels/system/testing.h"
#include "tests/setup/draws.h"

namespace tiercel::matrix_step_test {
namespace {

constexpr int kM = 16;
constexpr int kN = 8;
constexpr int kK = 32;
constexpr size_t kLanes = 32;

// sums[kM][kN] += a[kM][kK] b[kN][kK]^T, in plain loops.
struct Matrices {
  int8_t a[kM][kK];
  int8_t b[kN][kK];
  int32_t sums[kM][kN];

  void Multiply() {
    for (int i = 0; i < kM; ++i) {
      for (int j = 0; j < kN; ++j) {
        for (int k = 0; k < kK; ++k) sums[i][j] += a[i][k] * b[j][k];
      }
    }
  }
};

// Four neighbours of a row, the first in the lowest byte.
uint32_t WordOf(const int8_t* four) {
  uint32_t word = 0;
  for (int i = 0; i < 4; ++i) {
    word |= static_cast<uint32_t>(static_cast<uint8_t>(four[i])) << (8 * i);
  }
  return word;
}

// The words of each lane, in the layout of device_lang.h.
std::vector<MatrixStepLane> LanesOf(const Matrices& m) {
  std::vector<MatrixStepLane> lanes(kLanes);
  for (size_t lane = 0; lane < kLanes; ++lane) {
    const size_t g = lane / 4;
    const size_t t = lane % 4;
    lanes[lane] = {
        {m.sums[g][2 * t], m.sums[g][2 * t + 1], m.sums[g + 8][2 * t],
         m.sums[g + 8][2 * t + 1]},
        {WordOf(&m.a[g][4 * t]), WordOf(&m.a[g + 8][4 * t]),
         WordOf(&m.a[g][16 + 4 * t]), WordOf(&m.a[g + 8][16 + 4 * t])},
        {WordOf(&m.b[g][4 * t]), WordOf(&m.b[g][16 + 4 * t])}};
  }
  return lanes;
}

Matrices RandomMatrices(std::mt19937& random) {
  Matrices m;
  for (auto& row : m.a) {
    for (int8_t& x : row) x = static_cast<int8_t>(random());
  }
  for (auto& row : m.b) {
    for (int8_t& x : row) x = static_cast<int8_t>(random());
  }
  for (auto& row : m.sums) {
    for (int32_t& x : row) x = static_cast<int32_t>(random() >> 8);
  }
  return m;
}

class MatrixStepTest : public BackendTest {};
INSTANTIATE_TEST_SUITE_P(Backends, MatrixStepTest, testing::ValuesIn(Gpus()),
                         NameOfBackend);

TEST_P(MatrixStepTest, IsTheProductAsLaidOut) {
  const std::unique_ptr<Stream> stream = NewStream();
  std::mt19937 random(1);
  std::vector<Matrices> all;
  for (int i = 0; i < 100; ++i) all.push_back(RandomMatrices(random));
  // The greatest possible sums do not overflow.
  std::fill(&all[0].a[0][0], &all[0].a[0][0] + kM * kK, int8_t{-128});
  std::fill(&all[0].b[0][0], &all[0].b[0][0] + kN * kK, int8_t{-128});
  // Each has one product alone, so that a wrong place is noticed.
  for (size_t i = 1; i <= 40; ++i) {
    all[i] = {};
    const auto k = static_cast<size_t>(random() % kK);
    all[i].a[random() % kM][k] = 3;
    all[i].b[random() % kN][k] = -7;
  }
  std::vector<MatrixStepLane> lanes;
  for (const Matrices& m : all) {
    const std::vector<MatrixStepLane> own = LanesOf(m);
    lanes.insert(lanes.end(), own.begin(), own.end());
  }
  OnDevice<MatrixStepLane> on_device(*stream, lanes);
  ASSERT_EQ(
      MatrixSteps(stream->queue().handle(), on_device.data(), std::ssize(all)),
      0);
  const std::vector<MatrixStepLane> got = on_device.Read();
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].Multiply();
    const std::vector<MatrixStepLane> expected = LanesOf(all[i]);
    for (size_t lane = 0; lane < kLanes; ++lane) {
      for (size_t j = 0; j < 4; ++j) {
        ASSERT_EQ(got[i * kLanes + lane].sums[j], expected[lane].sums[j])
            << "step " << i << ", lane " << lane << ", sum " << j;
      }
    }
  }
}

// ---- f16 ----

// Small integers, whose products and sums are exact in any order.
HalfStepMatrices SmallIntegers(std::mt19937& random) {
  std::uniform_int_distribution<int> small(-16, 16);
  HalfStepMatrices m;
  for (size_t i = 0; i < 16; ++i) {
    for (size_t j = 0; j < 16; ++j) {
      m.a[i][j] = F16FromF32(static_cast<float>(small(random)));
      m.b[i][j] = F16FromF32(static_cast<float>(small(random)));
      m.sums[i][j] = static_cast<float>(small(random));
    }
  }
  return m;
}

std::vector<HalfStepMatrices> MultiplyHalves(
    Stream& stream, const std::vector<HalfStepMatrices>& problems) {
  OnDevice<HalfStepMatrices> on_device(stream, problems);
  EXPECT_EQ(HalfMatrixSteps(stream.queue().handle(), on_device.data(),
                            std::ssize(problems)),
            0);
  return on_device.Read();
}

double Half(uint16_t bits) { return double{F32FromF16(bits)}; }

TEST_P(MatrixStepTest, OfHalvesIsTheProductAsLaidOut) {
  const std::unique_ptr<Stream> stream = NewStream();
  std::mt19937 random(2);
  std::vector<HalfStepMatrices> all;
  for (int i = 0; i < 50; ++i) all.push_back(SmallIntegers(random));
  const std::vector<HalfStepMatrices> got = MultiplyHalves(*stream, all);
  for (size_t n = 0; n < all.size(); ++n) {
    for (size_t i = 0; i < 16; ++i) {
      for (size_t j = 0; j < 16; ++j) {
        double sum = double{all[n].sums[i][j]};
        for (size_t k = 0; k < 16; ++k) {
          sum += Half(all[n].a[i][k]) * Half(all[n].b[k][j]);
        }
        ASSERT_EQ(double{got[n].sums[i][j]}, sum) << n << " " << i << " " << j;
      }
    }
  }
}

// A device may round each of the 17 summands to the place of the greatest.
TEST_P(MatrixStepTest, OfHalvesSumsInSinglePrecision) {
  const std::unique_ptr<Stream> stream = NewStream();
  std::mt19937 random(3);
  NormalFloats normal;
  std::vector<HalfStepMatrices> all(20);
  for (HalfStepMatrices& m : all) {
    for (size_t i = 0; i < 16; ++i) {
      for (size_t j = 0; j < 16; ++j) {
        m.a[i][j] = F16FromF32(normal(random));
        m.b[i][j] = F16FromF32(normal(random));
        m.sums[i][j] = normal(random);
      }
    }
  }
  const std::vector<HalfStepMatrices> got = MultiplyHalves(*stream, all);
  for (size_t n = 0; n < all.size(); ++n) {
    for (size_t i = 0; i < 16; ++i) {
      for (size_t j = 0; j < 16; ++j) {
        double sum = double{all[n].sums[i][j]};
        double greatest = std::fabs(sum);
        for (size_t k = 0; k < 16; ++k) {
          const double product = Half(all[n].a[i][k]) * Half(all[n].b[k][j]);
          sum += product;
          greatest = std::max(greatest, std::fabs(product));
        }
        ASSERT_NEAR(double{got[n].sums[i][j]}, sum, 17 * 2 * greatest * 0x1p-23)
            << n << " " << i << " " << j;
      }
    }
  }
}

}  // namespace
}  // namespace tiercel::matrix_step_test
