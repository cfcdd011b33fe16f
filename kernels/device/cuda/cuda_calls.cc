// The module: with the kernels it is all of libtiercel-cuda.so.

#include "kernels/device/cuda/cuda_calls.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "kernels/device/cuda/cuda_error.h"
#include "kernels/device/kernel_entry.h"
#include "kernels/device/kernels_sum.h"

namespace tiercel {
namespace {

// The numbers of cuda_error.h, each with the runtime's own.
constexpr std::pair<int, int> kNamed[] = {
    {kCudaInvalidValue, cudaErrorInvalidValue},
    {kCudaOutOfMemory, cudaErrorMemoryAllocation},
    {kCudaInvalidConfiguration, cudaErrorInvalidConfiguration},
    {kCudaInsufficientDriver, cudaErrorInsufficientDriver},
    {kCudaDevicesUnavailable, cudaErrorDevicesUnavailable},
    {kCudaInvalidDeviceFunction, cudaErrorInvalidDeviceFunction},
    {kCudaNoDevice, cudaErrorNoDevice},
    {kCudaInvalidDevice, cudaErrorInvalidDevice},
    {kCudaDeviceUninitialized, cudaErrorDeviceUninitialized},
    {kCudaNoKernelImage, cudaErrorNoKernelImageForDevice},
    {kCudaEccUncorrectable, cudaErrorECCUncorrectable},
    {kCudaInvalidPtx, cudaErrorInvalidPtx},
    {kCudaNvlinkUncorrectable, cudaErrorNvlinkUncorrectable},
    {kCudaJitCompilerNotFound, cudaErrorJitCompilerNotFound},
    {kCudaUnsupportedPtxVersion, cudaErrorUnsupportedPtxVersion},
    {kCudaJitCompilationDisabled, cudaErrorJitCompilationDisabled},
    {kCudaContained, cudaErrorContained},
    {kCudaNotReady, cudaErrorNotReady},
    {kCudaIllegalAddress, cudaErrorIllegalAddress},
    {kCudaLaunchTimeout, cudaErrorLaunchTimeout},
    {kCudaContextIsDestroyed, cudaErrorContextIsDestroyed},
    {kCudaAssert, cudaErrorAssert},
    {kCudaHardwareStackError, cudaErrorHardwareStackError},
    {kCudaIllegalInstruction, cudaErrorIllegalInstruction},
    {kCudaMisalignedAddress, cudaErrorMisalignedAddress},
    {kCudaInvalidAddressSpace, cudaErrorInvalidAddressSpace},
    {kCudaInvalidPc, cudaErrorInvalidPc},
    {kCudaLaunchFailure, cudaErrorLaunchFailure},
    {kCudaTensorMemoryLeak, cudaErrorTensorMemoryLeak},
    {kCudaMpsClientTerminated, cudaErrorMpsClientTerminated},
    {kCudaUnknown, cudaErrorUnknown},
};
static_assert(std::all_of(std::begin(kNamed), std::end(kNamed),
                          [](const auto& one) {
                            return one.first == one.second;
                          }));

constexpr CudaCalls kCalls = {
    .runtime = CUDART_VERSION,
    .driver_version = [](int* version) -> int {
      return cudaDriverGetVersion(version);
    },
    .count_gpus = [](int* gpus) -> int { return cudaGetDeviceCount(gpus); },
    .capability = [](int gpu, int* capability) -> int {
      int major = 0;
      int minor = 0;
      cudaError_t error = cudaDeviceGetAttribute(
          &major, cudaDevAttrComputeCapabilityMajor, gpu);
      if (error == cudaSuccess) {
        error = cudaDeviceGetAttribute(&minor,
                                       cudaDevAttrComputeCapabilityMinor, gpu);
      }
      *capability = 10 * major + minor;
      return error;
    },
    .pci_bus = [](int gpu, char* bus, int bytes) -> int {
      return cudaDeviceGetPCIBusId(bus, bytes, gpu);
    },
    .use_gpu = [](int gpu) -> int { return cudaSetDevice(gpu); },
    .clear_error = []() -> int { return cudaGetLastError(); },
    .error_text =
        [](int error) {
          return cudaGetErrorString(static_cast<cudaError_t>(error));
        },

    .allocate = [](void** data, size_t bytes) -> int {
      return cudaMalloc(data, bytes);
    },
    .release = [](void* data) -> int { return cudaFree(data); },
    .memory = [](size_t* free, size_t* total) -> int {
      return cudaMemGetInfo(free, total);
    },
    .copy = [](void* to, const void* from, size_t bytes) -> int {
      return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice);
    },
    .wait_for_gpu = []() -> int { return cudaDeviceSynchronize(); },

    .create_stream = [](CUstream_st** stream) -> int {
      return cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
    },
    .destroy_stream = [](CUstream_st* stream) -> int {
      return cudaStreamDestroy(stream);
    },
    .wait_for_stream = [](CUstream_st* stream) -> int {
      return cudaStreamSynchronize(stream);
    },
    .query_stream = [](CUstream_st* stream) -> int {
      return cudaStreamQuery(stream);
    },
    .queue_copy = [](CUstream_st* stream, void* to, const void* from,
                     size_t bytes) -> int {
      return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
    },
    .queue_zero = [](CUstream_st* stream, void* to, size_t bytes) -> int {
      return cudaMemsetAsync(to, 0, bytes, stream);
    },
    .create_event = [](CUevent_st** event) -> int {
      return cudaEventCreateWithFlags(
          event, cudaEventDisableTiming | cudaEventBlockingSync);
    },
    .destroy_event = [](CUevent_st* event) -> int {
      return cudaEventDestroy(event);
    },
    .record = [](CUevent_st* event, CUstream_st* stream) -> int {
      return cudaEventRecord(event, stream);
    },
    .wait_for_event = [](CUevent_st* event) -> int {
      return cudaEventSynchronize(event);
    },

    .pin = [](void* host, size_t bytes) -> int {
      return cudaHostRegister(host, bytes, cudaHostRegisterMapped);
    },
    .unpin = [](void* host) -> int { return cudaHostUnregister(host); },
    .address_of_pinned = [](void** seen, void* pinned) -> int {
      return cudaHostGetDevicePointer(seen, pinned, 0);
    },
};

}  // namespace
}  // namespace tiercel

extern "C" __attribute__((visibility("default"))) const tiercel::CudaModule*
tiercel_cuda_module() {
  static const tiercel::CudaModule module = {
      tiercel::kKernelsSum, tiercel::kCalls, tiercel::KernelBody::first};
  return &module;
}
