// Tests of CUDA that need no GPU; the others are those of Stream and of the
// ops.

#include "kernels/device/cuda/cuda_driver.h"

#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/device/stream.h"
#include "kernels/layer/rms_norm.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

// A GPU that fails.
class FakeCuda final : public DeviceQueue {
 public:
  CUstream_st* handle() override { return nullptr; }
  DeviceMemory& memory() override { return SystemMemory(); }
  int64_t FreeBytes() override { return 0; }
  std::string PciBus() override { return ""; }
  absl::Status Zero(DevicePtr<void>, size_t) override {
    return DeviceError("device_failed", "fake zero");
  }
  absl::Status Synchronize() override {
    return DeviceError("device_failed", "fake wait");
  }
  absl::Status Unpack(const std::byte*, const PackedRun*, int64_t) override {
    return DeviceError("device_failed", "fake unpack");
  }
  absl::Status CopyColumns(const ColumnsCopy&) override {
    return DeviceError("device_failed", "fake columns");
  }
  uint64_t Mark() override { return 1; }
  absl::Status Await(uint64_t) override { return Synchronize(); }
  absl::Status Check() override { return Synchronize(); }
  absl::Status Pin(std::byte*, size_t) override {
    return DeviceError("device_failed", "fake pin");
  }
  void Unpin(std::byte*) override {}
  bool KernelsSee(std::byte*) override { return false; }

 private:
  absl::Status CopyAny(void*, const void*, size_t) override {
    return DeviceError("device_failed", "fake copy");
  }
};

std::unique_ptr<Stream> FakeStream() {
  absl::StatusOr<std::unique_ptr<Stream>> stream =
      Stream::Over(std::make_unique<FakeCuda>());
  EXPECT_TRUE(stream.ok()) << stream.status();
  return std::move(stream).value();
}

TEST(DeviceQueueTest, WithoutAGpuTheErrorHasTheReason) {
  const absl::StatusOr<std::unique_ptr<Stream>> stream =
      Stream::Create({DeviceKind::kCuda});
  if (stream.ok()) return;  // there is a GPU
  EXPECT_EQ(CodeOf(stream.status()), "no_device");
  EXPECT_EQ(ClassOf(stream.status()), ErrorClass::kDevice);
  const std::string message(stream.status().message());
  if (kHasKernels) {
    EXPECT_THAT(message,
                testing::MatchesRegex(
                    "device cuda: (this machine has no NVIDIA driver "
                    ".*|the NVIDIA driver reports no GPU to this process)"));
  } else {
    EXPECT_THAT(message, testing::StartsWith("device cuda: the CUDA module: "
                                             "libtiercel-cuda.so: "));
  }
}

TEST(DeviceQueueTest, IsWhatAStreamOnCudaUses) {
  const std::unique_ptr<Stream> stream = FakeStream();
  EXPECT_EQ(stream->device(), DeviceKind::kCuda);
  EXPECT_EQ(stream->pool().num_threads(), 1);
  EXPECT_EQ(&stream->memory(), &SystemMemory());
  int to = 0;
  const int from = 5;
  EXPECT_EQ(stream->Copy(InPlace(&to), &from, sizeof(int)).message(),
            "fake copy");
  EXPECT_EQ(to, 0);
  EXPECT_EQ(stream->Zero(InPlace(&to), sizeof(int)).message(), "fake zero");
  EXPECT_EQ(stream->Synchronize().message(), "fake wait");
}

// This needs a kernel to launch.
TEST(DeviceQueueTest, ALaunchThatFailsIsAnErrorThatNamesTheOp) {
  if constexpr (kHasKernels) {
    const float x = 1.0f;
    float out = 2.0f;
    const absl::Status status = RmsNorm(
        *FakeStream(),
        {InPlace(&x), 1, InPlace(&x), 1e-5f, 1, 1, 1, InPlace(&out), 1});
    EXPECT_EQ(CodeOf(status), "device_failed");
    EXPECT_THAT(std::string(status.message()),
                testing::StartsWith("RmsNorm: CUDA error "));
    EXPECT_EQ(out, 2.0f);
  }
}

}  // namespace
}  // namespace tiercel
