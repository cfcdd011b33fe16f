#ifndef TIERCEL_KERNELS_DEVICE_CUDA_CUDA_ERROR_H_
#define TIERCEL_KERNELS_DEVICE_CUDA_CUDA_ERROR_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tiercel {

// The values of the runtime's cudaError_t that this program tells apart, for
// files compiled without its headers.
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
  kCudaNotReady = 600,
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

// Returns true if the process loses the GPU with this error: every later call
// returns it, and only another process can use the GPU again.
bool LosesDevice(int error);

// The status of a call in the name of `who`, from a cudaError_t: device_lost;
// device_failed, after which other calls work as before; or OK. The runtime's
// last error is cleared, unless the device is lost, so that no later call
// returns it.
absl::Status CudaStatus(std::string_view who, int error);
// Returns that status with `text` in the place of the runtime's text.
absl::Status CudaStatus(std::string_view who, int error,
                        const std::string& text);

// The runtime's text for an error, which is cleared as above. The function is
// that of the implementation of CudaDriver.
std::string CudaErrorText(int error);

// The runtime's facts about the GPU that is to be used.
struct GpuFacts {
  int gpu = 0;         // its number among those that the process sees
  int runtime = 0;     // CUDA version of the module (13010: 13.1)
  int driver = 0;      // newest version that the driver supports; 0: no driver
  int gpus = 0;        // number of GPUs that the process sees
  int capability = 0;  // 90: 9.0; 0: not known yet
  int error = 0;       // cudaError_t of the query, opening or first kernel
};

// Errors: no_device, saying what is missing; device_lost.
absl::Status CheckGpu(const GpuFacts& facts);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_CUDA_CUDA_ERROR_H_
