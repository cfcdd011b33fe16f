#include "kernels/layer/swiglu.h"

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"
#include "tests/setup/draws.h"

namespace tiercel::swiglu_test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// There is one element more than is used, so that a write past the end is
// noticed. Array `unaligned` (of gate, up and out) is not aligned for packets.
std::vector<float> RunSwiglu(Stream& stream, const std::vector<float>& gate,
                             const std::vector<float>& up, int64_t rows,
                             int64_t dim, int unaligned = -1) {
  const auto array = [&](std::vector<float> x, int index) {
    if (index == unaligned) x.insert(x.begin(), kPoison);
    return OnDevice<float>(stream, std::move(x));
  };
  OnDevice<float> g = array(gate, 0);
  OnDevice<float> u = array(up, 1);
  OnDevice<float> o = array(std::vector<float>(gate.size() + 1, kPoison), 2);
  const absl::Status status =
      Swiglu(stream, {g.data() + (unaligned == 0), u.data() + (unaligned == 1),
                      rows, dim, o.data() + (unaligned == 2)});
  EXPECT_TRUE(status.ok()) << status;
  std::vector<float> out = o.Read();
  EXPECT_TRUE(std::isnan(out.back()));
  out.pop_back();
  if (unaligned == 2) out.erase(out.begin());
  return out;
}

// Exp is within 1e-7, and four roundings follow. Below -87 only the bound of
// swiglu_body.h holds.
void ExpectNear(float got, float gate, float up) {
  const double expected =
      gate / (1 + std::exp(-static_cast<double>(gate))) * up;
  ASSERT_NEAR(
      got, expected,
      std::fabs(expected) * 4e-7 + 6.1e-39 * std::fabs(gate * up) + 1e-44)
      << gate << " " << up;
}

class SwigluTest : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (!IsSkipped()) fast_ = NewStream(2);
  }

  std::unique_ptr<Stream> ref_ = MakeStream(DeviceKind::kRef);
  std::unique_ptr<Stream> fast_;
};
INSTANTIATE_TEST_SUITE_P(Backends, SwigluTest,
                         testing::ValuesIn(FastBackends()), NameOfBackend);

TEST_P(SwigluTest, EqualsReferenceAndFormula) {
  int turn = 0;
  for (int64_t dim : {1, 15, 16, 17, 1536, 4099}) {
    for (int64_t rows : {0, 1, 3, 7}) {
      std::mt19937 random(11);
      NormalFloats normal(0.0f, 20.0f);
      std::vector<float> gate(static_cast<size_t>(rows * dim));
      std::vector<float> up(gate.size());
      for (float& x : gate) x = normal(random);
      for (float& x : up) x = normal(random);
      const std::vector<float> expected = RunSwiglu(*ref_, gate, up, rows, dim);
      const std::vector<float> out =
          RunSwiglu(*fast_, gate, up, rows, dim, ++turn % 4 - 1);
      for (size_t i = 0; i < out.size(); ++i) {
        ExpectNear(expected[i], gate[i], up[i]);
        ExpectNear(out[i], gate[i], up[i]);
        if (HasFma()) {
          ASSERT_EQ(out[i], expected[i]) << gate[i] << " " << up[i];
        }
      }
    }
  }
}

TEST_P(SwigluTest, FarGates) {
  const std::vector<float> gate = {0.0f,  -0.0f,  87.0f,   89.0f,
                                   1e30f, -87.0f, -88.0f,  -89.0f,
                                   -1e3f, -1e30f, kPoison, kInf};
  const std::vector<float> up(gate.size(), 2.0f);
  for (Stream* stream : {ref_.get(), fast_.get()}) {
    const std::vector<float> out =
        RunSwiglu(*stream, gate, up, 1, static_cast<int64_t>(gate.size()));
    for (size_t i = 0; i < 9; ++i) ExpectNear(out[i], gate[i], up[i]);
    EXPECT_LE(std::fabs(out[9]), 1e-7f);
    EXPECT_TRUE(std::isnan(out[10]));
    EXPECT_FALSE(std::isfinite(out[11]));
  }
}

TEST_P(SwigluTest, MayOverwriteAnInput) {
  const std::vector<float> gate = {1.0f, -2.0f, 3.0f, 4.0f, 5.0f};
  const std::vector<float> up = {0.5f, 0.25f, -1.0f, 1.0f, 2.0f};
  const std::vector<float> expected = RunSwiglu(*fast_, gate, up, 1, 5);
  for (const bool into_gate : {true, false}) {
    OnDevice<float> g(*fast_, gate);
    OnDevice<float> u(*fast_, up);
    OnDevice<float>& out = into_gate ? g : u;
    ASSERT_TRUE(Swiglu(*fast_, {g.data(), u.data(), 1, 5, out.data()}).ok());
    EXPECT_EQ(out.Read(), expected);
  }
}

// There are more elements than a launch has threads.
TEST_P(SwigluTest, Long) {
  const std::vector<float> gate((size_t{1} << 22) + 4099, 0.5f);
  if (TriesLess()) GTEST_SKIP();
  const std::vector<float> out =
      RunSwiglu(*fast_, gate, gate, 1, static_cast<int64_t>(gate.size()));
  const float one = RunSwiglu(*ref_, {0.5f}, {0.5f}, 1, 1)[0];
  for (const float x : out) ASSERT_NEAR(x, one, 1e-7);
}

TEST_P(SwigluTest, RefusesWrongShapes) {
  float one = 1.0f;
  const DevicePtr<float> x = InPlace(&one);
  EXPECT_EQ(CodeOf(Swiglu(*fast_, {x, x, -1, 1, x})), "invalid_sizes");
  EXPECT_EQ(CodeOf(Swiglu(*fast_, {x, x, 1, 0, x})), "invalid_sizes");
  EXPECT_EQ(
      CodeOf(Swiglu(*fast_, {x, x, int64_t{1} << 40, int64_t{1} << 40, x})),
      "invalid_sizes");
  EXPECT_EQ(one, 1.0f);
}

}  // namespace
}  // namespace tiercel::swiglu_test
