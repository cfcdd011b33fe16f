#include "offload/weights/streamed_layers.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/system/faults.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

using testing::ElementsAre;

constexpr auto kNever = [] { return false; };
constexpr auto kAlways = [] { return true; };
constexpr int64_t kFloats = 100;      // the first array of a layer
constexpr int64_t kBlockBytes = 512;  // both arrays, aligned

TEST(StreamedLayersTest, AreAtEvenDistances) {
  EXPECT_THAT(StreamedLayers::Choose(3, 9), ElementsAre(2, 5, 8));
  EXPECT_THAT(StreamedLayers::Choose(4, 6), ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(StreamedLayers::Choose(3, 3), ElementsAre(0, 1, 2));
  EXPECT_EQ(StreamedLayers::Choose(31, 64).size(), 31u);
}

// Layers of two arrays, whose contents follow from their number.
class StreamedLayersPasses : public testing::TestWithParam<int> {
 protected:
  StreamedLayersPasses() {
    for (int i = 0; i < GetParam(); ++i) layers_.push_back(3 * i + 1);
    auto made = StreamedLayers::Create(
        layers_, kBlockBytes, SystemMemory(),
        std::make_unique<SimulatedLink>(/*rate=*/1e12, /*latency=*/0), {});
    EXPECT_TRUE(made.ok()) << made.status();
    streamed_ = *std::move(made);
    for (const int layer : layers_) {
      DeviceMemory& memory = streamed_->BeginLayer(layer);
      arrays_.push_back(*DeviceArray<float>::Create(memory, kFloats, "test"));
      more_.push_back(*DeviceArray<float>::Create(memory, 1, "test"));
      EXPECT_EQ(CodeOf(DeviceArray<float>::Create(memory, 17, "t").status()),
                "out_of_memory");
      for (int64_t i = 0; i < kFloats; ++i) {
        HostAddress(arrays_.back().data())[i] = static_cast<float>(layer + i);
      }
      *HostAddress(more_.back().data()) = static_cast<float>(-layer);
      EXPECT_TRUE(streamed_->KeepLayer(layer, *stream_).ok());
    }
  }

  // Passes a layer, and checks that its arrays are what was loaded.
  absl::Status Pass(size_t index, Phase phase = Phase::kVerify,
                    CopyEngine::Cancelled cancelled = kNever) {
    const int layer = layers_[index];
    return streamed_->WithLayer(layer, phase, cancelled, &use_, [&] {
      for (const int64_t i : {int64_t{0}, kFloats - 1}) {
        EXPECT_EQ(HostAddress(arrays_[index].data())[i],
                  static_cast<float>(layer + i));
      }
      EXPECT_EQ(*HostAddress(more_[index].data()), static_cast<float>(-layer));
      return absl::OkStatus();
    });
  }
  int64_t Moved(Phase phase = Phase::kVerify) const {
    return static_cast<int64_t>(use_[static_cast<size_t>(phase)].h2d_bytes);
  }

  const std::unique_ptr<Stream> stream_ = MakeStream(DeviceKind::kCpu);
  std::vector<int> layers_;
  std::unique_ptr<StreamedLayers> streamed_;
  std::vector<DeviceArray<float>> arrays_;
  std::vector<DeviceArray<float>> more_;
  LinkLedger use_ = {};
};
INSTANTIATE_TEST_SUITE_P(Counts, StreamedLayersPasses,
                         testing::Values(3, 4, 5));

// A pass brings every layer once; that of an even number ends with the fetch of
// the first layer for the next. Of three layers the second stays.
TEST_P(StreamedLayersPasses, EveryPassBringsEveryLayer) {
  for (const int layer : layers_) EXPECT_TRUE(streamed_->Has(layer));
  EXPECT_FALSE(streamed_->Has(0));
  EXPECT_FALSE(streamed_->Has(layers_.back() + 1));
  const int64_t pass = GetParam() * kBlockBytes;
  const int64_t ahead = GetParam() % 2 == 0 ? kBlockBytes : 0;
  for (int passes = 1; passes <= 3; ++passes) {
    for (size_t i = 0; i < layers_.size(); ++i) ASSERT_TRUE(Pass(i).ok());
    const int64_t stay = GetParam() == 3 ? (passes - 1) * kBlockBytes : 0;
    EXPECT_EQ(Moved(), passes * pass + ahead - stay);
  }
  EXPECT_GT(use_[static_cast<size_t>(Phase::kVerify)].busy_seconds, 0);
  EXPECT_EQ(Moved(Phase::kPrefill), 0);
  ASSERT_TRUE(Pass(0, Phase::kPrefill).ok());
  ASSERT_TRUE(Pass(2, Phase::kPrefill).ok());
  EXPECT_GT(Moved(Phase::kPrefill), 0);
}

TEST_P(StreamedLayersPasses, LayersComeInAnyOrder) {
  for (const size_t index : {2, 2, 0, 2, 1, 0, 0, 1, 2, 1}) {
    ASSERT_TRUE(Pass(index).ok());
  }
}

TEST_P(StreamedLayersPasses, ACopyThatFailsIsMadeAgain) {
  for (int at = 0; at < 4; ++at) {
    FailAt fails;
    fails.Arm(at + 1);
    absl::Status first = absl::OkStatus();
    {
      const Faults faults(Callee::kLink,
                          [&](const Operation&) { return fails() ? 1 : 0; });
      for (size_t i = 0; first.ok(); i = (i + 1) % layers_.size()) {
        first = Pass(i);
      }
    }
    EXPECT_EQ(CodeOf(first), "copy_failed") << at;
    for (size_t i = 0; i < layers_.size(); ++i) ASSERT_TRUE(Pass(i).ok());
  }
}

TEST_P(StreamedLayersPasses, ACancelledPassLosesNothing) {
  for (size_t i = 0; i < layers_.size(); ++i) {
    const absl::Status status = Pass(i, Phase::kVerify, kAlways);
    if (!status.ok()) {
      EXPECT_EQ(CodeOf(status), "cancelled");
    }
    ASSERT_TRUE(Pass(i).ok());
  }
}

// The thread that copies is not in a forked process.
TEST_P(StreamedLayersPasses, AForkedProcessIsTold) {
  ASSERT_TRUE(Pass(0).ok());
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);  // it would wait for ever
    const bool told = CodeOf(Pass(1)) == "forked";
    streamed_.reset();
    _exit(told ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(Pass(1).ok());
}

TEST_P(StreamedLayersPasses, AnErrorOfTheLayerIsReturned) {
  const absl::Status status = streamed_->WithLayer(
      layers_[0], Phase::kVerify, kNever, &use_,
      [] { return DeviceError("device_failed", "as asked"); });
  EXPECT_EQ(CodeOf(status), "device_failed");
  ASSERT_TRUE(Pass(0).ok());
}

}  // namespace
}  // namespace tiercel
