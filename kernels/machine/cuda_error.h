#ifndef TIERCEL_KERNELS_MACHINE_CUDA_ERROR_H_
#define TIERCEL_KERNELS_MACHINE_CUDA_ERROR_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tiercel {

// What of the runtime's cudaError_t means something to us, for files compiled
// without its headers.
enum CudaError : int {
  kCudaSuccess = 0,
  kCudaInvalidValue = 1,
  kCudaOutOfMemory = 2,
  kCudaInvalidConfiguration = 9,
  kCudaInsufficientDriver = 35,
  kCudaDevicesUnavailable = 46,
  kCudaInvalidDeviceFunction = 98,
  kCudaNoDevice = 100,
  kCudaInvalidDevice = 101,
  kCudaDeviceUninitialized = 201,
  kCudaNoKernelImage = 209,
  kCudaEccUncorrectable = 214,
  kCudaInvalidPtx = 218,
  kCudaNvlinkUncorrectable = 220,
  kCudaJitCompilerNotFound = 221,
  kCudaUnsupportedPtxVersion = 222,
  kCudaJitCompilationDisabled = 223,
  kCudaContained = 226,
  kCudaIllegalAddress = 700,
  kCudaLaunchTimeout = 702,
  kCudaContextIsDestroyed = 709,
  kCudaAssert = 710,
  kCudaHardwareStackError = 714,
  kCudaIllegalInstruction = 715,
  kCudaMisalignedAddress = 716,
  kCudaInvalidAddressSpace = 717,
  kCudaInvalidPc = 718,
  kCudaLaunchFailure = 719,
  kCudaTensorMemoryLeak = 721,
  kCudaMpsClientTerminated = 810,
  kCudaUnknown = 999,
};

// Whether the GPU is lost to the process with this error: every call from then
// on ends with it, and only another process can use the GPU again.
bool LosesDevice(int error);

// What `who` met, from a cudaError_t: device_lost; device_failed, after which
// other calls are as good as before; or OK. The runtime forgets the error,
// unless the device is lost: a later call must not answer for an earlier one.
absl::Status CudaStatus(std::string_view who, int error);

// The runtime's own words for an error, which it forgets as above. From
// whichever door is linked (cuda_stream.h).
std::string CudaErrorText(int error);

// What the runtime says of the GPU that is to be used.
struct GpuFacts {
  int gpu = 0;         // its number among those that the process sees
  int runtime = 0;     // the CUDA of this build, 13010 being 13.1; 0: none
  int driver = 0;      // the newest that the driver knows; 0: no driver
  int gpus = 0;        // that the process sees
  int capability = 0;  // 90 being 9.0; 0: not asked yet
  int error = 0;  // a cudaError_t: of asking, of opening, of a first kernel
};

// Errors: no_device, saying what is missing; device_lost.
absl::Status CheckGpu(const GpuFacts& facts);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_MACHINE_CUDA_ERROR_H_
