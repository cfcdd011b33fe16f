// Compares the selection of the greatest with sorting.

#include "kernels/select/top_k.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"

namespace tiercel::top_k_test {
namespace {

constexpr int32_t kUnwritten = -77;

using Places = std::vector<int32_t>;

Places Sorted(const float* values, int64_t n, int64_t always, int64_t k) {
  Places places(static_cast<size_t>(n));
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin() + std::min(always, n), places.end(),
                   [&](int32_t a, int32_t b) { return values[a] > values[b]; });
  places.resize(static_cast<size_t>(std::min(k, n)));
  std::sort(places.begin(), places.end());
  return places;
}

// Selects from rows. There is one element more than is used, so that a write
// past the end is noticed.
Places PlacesOf(Stream& stream, const std::vector<float>& values,
                TopKParams p) {
  OnDevice<float> given(stream, values);
  OnDevice<int32_t> out(
      stream,
      Places(static_cast<size_t>(p.rows * std::min(p.k, p.n)) + 1, kUnwritten));
  p.values = given.data();
  p.out = out.data();
  const absl::Status status = TopK(stream, p);
  EXPECT_TRUE(status.ok()) << status;
  Places places = out.Read();
  EXPECT_EQ(places.back(), kUnwritten);
  places.pop_back();
  return places;
}

class TopKTest : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (!IsSkipped()) stream_ = NewStream(2);
  }

  // Selects from one row.
  Places Keep(const std::vector<float>& values, int64_t always, int64_t k) {
    const int64_t n = std::ssize(values);
    return PlacesOf(*stream_, values, {nullptr, n, 1, n, always, k, nullptr});
  }

  std::unique_ptr<Stream> stream_;
};
INSTANTIATE_TEST_SUITE_P(Backends, TopKTest, testing::ValuesIn(Backends()),
                         NameOfBackend);

TEST_P(TopKTest, IsWhatSortingThemGives) {
  for (unsigned seed = 0; seed < (TriesFew() ? 60u : 3000u); ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](unsigned n) {
      return static_cast<int64_t>(random() % n);
    };
    const int64_t n = below(seed % 20 == 0 ? 2000 : 70);
    TopKParams p = {nullptr, n + below(3), 1 + below(4),
                    n,       below(5),     below(seed % 20 == 0 ? 2000 : 80),
                    nullptr};
    // The values are of both signs, and from all to hardly any are equal. NaN
    // is between rows.
    std::vector<float> values(static_cast<size_t>(p.rows * p.stride), kPoison);
    const unsigned kinds = 1u << random() % 8;
    for (int64_t i = 0; i < std::ssize(values); ++i) {
      if (i % p.stride >= n) continue;
      values[static_cast<size_t>(i)] =
          static_cast<float>(below(kinds) - kinds / 3) / 3.0f;
    }
    Places expected;
    for (int64_t row = 0; row < p.rows; ++row) {
      const Places one =
          Sorted(values.data() + row * p.stride, n, p.always, p.k);
      expected.insert(expected.end(), one.begin(), one.end());
    }
    ASSERT_EQ(PlacesOf(*stream_, values, p), expected)
        << seed << ": " << p.k << " of " << n << ", always " << p.always;
  }
}

TEST_P(TopKTest, TheFirstAlwaysAndThenTheEarlierOfEquals) {
  const std::vector<float> values = {0, 0, 5, 1, 5, 5, 1};
  EXPECT_EQ(Keep(values, 2, 4), (Places{0, 1, 2, 4}));
  EXPECT_EQ(Keep(values, 0, 4), (Places{2, 3, 4, 5}));
  EXPECT_EQ(Keep(values, 3, 2), (Places{0, 1}));
  EXPECT_EQ(Keep(values, 1, 0), Places{});
  EXPECT_EQ(Keep(values, 1, 7), (Places{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(Keep(values, 9, 100), (Places{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(Keep({}, 1, 3), Places{});
}

// The two zeros are equal. Very small and great numbers and infinities are
// ordered, too.
TEST_P(TopKTest, NumbersOfEveryKind) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {-kInf, -0.0f, 0.0f,   1e-45f, -1e-45f,
                                     kInf,  3e38f, -3e38f, -0.0f};
  for (int64_t k = 0; k <= 9; ++k) {
    EXPECT_EQ(Keep(values, 0, k), Sorted(values.data(), 9, 0, k)) << k;
  }
}

TEST(TopKShapeTest, RefusesWhatCannotBe) {
  const std::unique_ptr<Stream> stream = MakeStream(DeviceKind::kCpu);
  const float values[4] = {};
  int32_t out[4] = {kUnwritten, kUnwritten, kUnwritten, kUnwritten};
  const auto code_of = [&](auto change) {
    TopKParams p = {InPlace(values), 4, 1, 4, 0, 2, InPlace(out)};
    change(p);
    return CodeOf(TopK(*stream, p));
  };
  EXPECT_EQ(code_of([](auto& p) { p.rows = -1; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.n = -1; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.n = int64_t{1} << 29; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.stride = 3; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.always = -1; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.k = -1; }), "invalid_sizes");
  for (const int32_t place : out) EXPECT_EQ(place, kUnwritten);
}

}  // namespace
}  // namespace tiercel::top_k_test
