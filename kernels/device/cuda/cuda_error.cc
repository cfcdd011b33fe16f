#include "kernels/device/cuda/cuda_error.h"

#include "absl/strings/str_cat.h"
#include "kernels/device/kernel_entry.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

// The oldest GPU for which CUDA 13 compiles: Turing.
constexpr int kOldestCapability = 75;

// Formats version 13000 as "13.0".
std::string VersionText(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

std::string CapabilityText(int capability) {
  return absl::StrCat("compute capability ", capability / 10, ".",
                      capability % 10);
}

static_assert(kNoKernelBody == kCudaInvalidDeviceFunction);

bool LacksKernels(int error) {
  switch (error) {
    case kCudaInvalidDeviceFunction:
    case kCudaNoKernelImage:
    case kCudaInvalidPtx:
    case kCudaJitCompilerNotFound:
    case kCudaUnsupportedPtxVersion:
    case kCudaJitCompilationDisabled:
      return true;
    default:
      return false;
  }
}

// Returns the reason for which the GPU cannot be used, or "".
std::string ReasonUnusable(const GpuFacts& facts) {
  if (facts.driver == 0) {
    return "this machine has no NVIDIA driver (libcuda.so.1)";
  }
  if (facts.error == kCudaInsufficientDriver) {
    return absl::StrCat("the NVIDIA driver supports CUDA up to ",
                        VersionText(facts.driver), ", need ",
                        VersionText(facts.runtime));
  }
  if (facts.error == kCudaNoDevice ||
      (facts.error == kCudaSuccess && facts.gpus == 0)) {
    return "the NVIDIA driver reports no GPU to this process";
  }
  if (facts.error == kCudaSuccess && facts.gpu >= facts.gpus) {
    return absl::StrCat("the NVIDIA driver reports ", facts.gpus,
                        facts.gpus == 1 ? " GPU" : " GPUs",
                        " to this process, need ", facts.gpu + 1);
  }
  if (facts.capability > 0 && facts.capability < kOldestCapability) {
    return absl::StrCat("the GPU has ", CapabilityText(facts.capability),
                        ", need 7.5 (Turing) or later");
  }
  if (facts.error == kCudaDevicesUnavailable) {
    return "the GPU is unavailable: another process uses it exclusively, or it "
           "is being reset";
  }
  if (LacksKernels(facts.error)) {
    return absl::StrCat("this build has no kernels for the GPU, which has ",
                        CapabilityText(facts.capability), " (",
                        CudaErrorText(facts.error), ")");
  }
  if (facts.error != kCudaSuccess) {
    return absl::StrCat("the GPU cannot be opened: CUDA error ", facts.error,
                        ", ", CudaErrorText(facts.error));
  }
  return "";
}

}  // namespace

bool LosesDevice(int error) {
  switch (error) {
    case kCudaDeviceUninitialized:
    case kCudaEccUncorrectable:
    case kCudaNvlinkUncorrectable:
    case kCudaContained:
    case kCudaIllegalAddress:
    case kCudaLaunchTimeout:
    case kCudaContextIsDestroyed:
    case kCudaAssert:
    case kCudaHardwareStackError:
    case kCudaIllegalInstruction:
    case kCudaMisalignedAddress:
    case kCudaInvalidAddressSpace:
    case kCudaInvalidPc:
    case kCudaLaunchFailure:
    case kCudaTensorMemoryLeak:
    case kCudaMpsClientTerminated:
    case kCudaUnknown:
      return true;
    default:
      return false;
  }
}

absl::Status CudaStatus(std::string_view who, int error) {
  if (error == kCudaSuccess) return absl::OkStatus();
  return CudaStatus(who, error, CudaErrorText(error));
}

absl::Status CudaStatus(std::string_view who, int error,
                        const std::string& text) {
  if (error == kCudaSuccess) return absl::OkStatus();
  const std::string what =
      absl::StrCat(std::string(who), ": CUDA error ", error, ", ", text);
  if (!LosesDevice(error)) return DeviceError("device_failed", what);
  return DeviceError(
      "device_lost",
      absl::StrCat(what, "; this process can no longer use the GPU"));
}

absl::Status CheckGpu(const GpuFacts& facts) {
  if (LosesDevice(facts.error)) return CudaStatus("device cuda", facts.error);
  const std::string reason = ReasonUnusable(facts);
  if (reason.empty()) return absl::OkStatus();
  return DeviceError("no_device", absl::StrCat("device cuda: ", reason));
}

}  // namespace tiercel
