#include "kernels/device/cuda/cuda_error.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/status/error.h"

namespace tiercel::cuda_error_test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr GpuFacts kH200 = {
    .runtime = 13000, .driver = 13010, .gpus = 1, .capability = 90};

GpuFacts With(int error, GpuFacts facts = kH200) {
  facts.error = error;
  return facts;
}

TEST(CudaErrorTest, AGpuThatServesIsNoError) {
  EXPECT_TRUE(CheckGpu(kH200).ok());
  EXPECT_TRUE(
      CheckGpu({.runtime = 13000, .driver = 13000, .gpus = 8, .capability = 75})
          .ok());
  EXPECT_TRUE(CudaStatus("Op", kCudaSuccess).ok());
}

// H01, H02: each missing part has its own sentence.
TEST(CudaErrorTest, AnUnusableGpuHasItsReason) {
  const struct {
    GpuFacts facts;
    const char* sentence;
  } cases[] = {
      {{.runtime = 13000}, "this machine has no NVIDIA driver (libcuda.so.1)"},
      {{.runtime = 13000, .driver = 12080, .error = kCudaInsufficientDriver},
       "the NVIDIA driver supports CUDA up to 12.8, need 13.0"},
      {{.runtime = 13000, .driver = 13000},
       "the NVIDIA driver reports no GPU to this process"},
      {{.runtime = 13000, .driver = 13000, .error = kCudaNoDevice},
       "the NVIDIA driver reports no GPU to this process"},
      {{.runtime = 13000, .driver = 13000, .gpus = 1, .capability = 61},
       "the GPU has compute capability 6.1, need 7.5 (Turing) or later"},
      {{.runtime = 13000, .driver = 13000, .gpus = 1, .capability = 70},
       "the GPU has compute capability 7.0, need 7.5 (Turing) or later"},
      {{.gpu = 1, .runtime = 13000, .driver = 13000, .gpus = 1},
       "the NVIDIA driver reports 1 GPU to this process, need 2"},
      {{.gpu = 4, .runtime = 13000, .driver = 13000, .gpus = 2},
       "the NVIDIA driver reports 2 GPUs to this process, need 5"},
      {With(kCudaDevicesUnavailable),
       "the GPU is unavailable: another process uses it exclusively, or it is "
       "being reset"},
  };
  for (const auto& one : cases) {
    const absl::Status status = CheckGpu(one.facts);
    EXPECT_EQ(CodeOf(status), "no_device") << one.sentence;
    EXPECT_EQ(ClassOf(status), ErrorClass::kDevice) << one.sentence;
    EXPECT_EQ(status.message(), std::string("device cuda: ") + one.sentence);
  }
}

TEST(CudaErrorTest, AGpuWithoutKernelsIsNamedByItsCapability) {
  for (const int error :
       {kCudaInvalidDeviceFunction, kCudaNoKernelImage, kCudaInvalidPtx,
        kCudaJitCompilerNotFound, kCudaUnsupportedPtxVersion,
        kCudaJitCompilationDisabled}) {
    const absl::Status status = CheckGpu(With(error));
    EXPECT_EQ(CodeOf(status), "no_device") << error;
    EXPECT_THAT(std::string(status.message()),
                StartsWith("device cuda: this build has no kernels for the "
                           "GPU, which has compute capability 9.0 ("))
        << error;
  }
}

TEST(CudaErrorTest, WhateverElseIsSaidWithItsNumber) {
  const absl::Status status = CheckGpu(With(kCudaInvalidDevice));
  EXPECT_EQ(CodeOf(status), "no_device");
  EXPECT_THAT(std::string(status.message()),
              StartsWith("device cuda: the GPU cannot be opened: CUDA error "
                         "101, "));
}

// H07, H08: after these errors no call works in this process, and the status
// says so.
TEST(CudaErrorTest, AGpuThatIsLostIsLost) {
  for (const int error :
       {kCudaDeviceUninitialized, kCudaEccUncorrectable,
        kCudaNvlinkUncorrectable, kCudaContained, kCudaIllegalAddress,
        kCudaLaunchTimeout, kCudaContextIsDestroyed, kCudaAssert,
        kCudaHardwareStackError, kCudaIllegalInstruction,
        kCudaMisalignedAddress, kCudaInvalidAddressSpace, kCudaInvalidPc,
        kCudaLaunchFailure, kCudaTensorMemoryLeak, kCudaMpsClientTerminated,
        kCudaUnknown}) {
    EXPECT_TRUE(LosesDevice(error)) << error;
    for (const absl::Status& status :
         {CudaStatus("Op", error), CheckGpu(With(error))}) {
      EXPECT_EQ(CodeOf(status), "device_lost") << error;
      EXPECT_EQ(ClassOf(status), ErrorClass::kDevice) << error;
      EXPECT_THAT(std::string(status.message()),
                  EndsWith("; this process can no longer use the GPU"));
    }
  }
}

TEST(CudaErrorTest, OthersAreOfOneCall) {
  for (const int error : {kCudaSuccess, kCudaInvalidValue, kCudaOutOfMemory,
                          kCudaInvalidConfiguration, kCudaNoDevice}) {
    EXPECT_FALSE(LosesDevice(error)) << error;
  }
  const absl::Status status = CudaStatus("Op", kCudaInvalidValue);
  EXPECT_EQ(CodeOf(status), "device_failed");
  EXPECT_THAT(std::string(status.message()), HasSubstr("Op: CUDA error 1, "));
}

}  // namespace
}  // namespace tiercel::cuda_error_test
