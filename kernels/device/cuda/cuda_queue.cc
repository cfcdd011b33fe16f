#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "kernels/device/copies.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/cuda/cuda_error.h"
#include "kernels/device/cuda/cuda_memory.h"

namespace tiercel {
namespace {

class GpuStream final : public DeviceQueue {
 public:
  GpuStream(int gpu, cudaStream_t handle)
      : gpu_(gpu), memory_(CudaMemory(gpu)), handle_(handle) {}
  ~GpuStream() override {
    cudaStreamSynchronize(handle_);
    for (cudaEvent_t event : events_) {
      if (event != nullptr) cudaEventDestroy(event);
    }
    cudaStreamDestroy(handle_);
  }
  cudaError_t CreateEvents() {
    cudaError_t error = cudaSuccess;
    for (cudaEvent_t& event : events_) {
      if (error != cudaSuccess) break;
      error = cudaEventCreateWithFlags(
          &event, cudaEventDisableTiming | cudaEventBlockingSync);
    }
    return error;
  }

  CUstream_st* handle() override {
    UseGpu(gpu_);
    return handle_;
  }
  DeviceMemory& memory() override { return memory_; }
  int64_t FreeBytes() override { return memory_.FreeBytes(); }
  std::string PciBus() override {
    char bus[32] = "";
    if (cudaDeviceGetPCIBusId(bus, sizeof(bus), gpu_) == cudaSuccess)
      return bus;
    cudaGetLastError();
    return "";
  }
  absl::Status Zero(DevicePtr<void> to, size_t bytes) override {
    UseGpu(gpu_);
    return CudaStatus("zero", cudaMemsetAsync(to.raw(), 0, bytes, handle_));
  }
  absl::Status Synchronize() override {
    return CudaStatus("device cuda", cudaStreamSynchronize(handle_));
  }
  absl::Status Unpack(const std::byte* packed, const PackedRun* runs,
                      int64_t count) override {
    return CudaStatus("Unpack", UnpackCuda(handle(), packed, runs, count));
  }
  absl::Status CopyColumns(const ColumnsCopy& p) override {
    return CudaStatus("Gather", CopyColumnsCuda(handle(), p));
  }

  uint64_t Mark() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t mark = last_ + 1;
    if (cudaEventRecord(EventOf(mark), handle_) != cudaSuccess) {
      cudaGetLastError();
      return kUnmarked;
    }
    return last_ = mark;
  }
  absl::Status Await(uint64_t mark) override {
    if (mark == 0) return absl::OkStatus();
    if (mark == kUnmarked) return Synchronize();
    return CudaStatus("device cuda", cudaEventSynchronize(EventOf(mark)));
  }

  absl::Status Check() override {
    const cudaError_t error = cudaStreamQuery(handle_);
    if (error == cudaErrorNotReady) {
      cudaGetLastError();
      return absl::OkStatus();
    }
    return CudaStatus("device cuda", error);
  }

  absl::Status Pin(std::byte* host, size_t bytes) override {
    UseGpu(gpu_);
    return CudaStatus("pin",
                      cudaHostRegister(host, bytes, cudaHostRegisterMapped));
  }
  void Unpin(std::byte* host) override { cudaHostUnregister(host); }
  bool KernelsSee(std::byte* pinned) override {
    void* seen = nullptr;
    UseGpu(gpu_);
    if (cudaHostGetDevicePointer(&seen, pinned, 0) == cudaSuccess) {
      return seen == pinned;
    }
    cudaGetLastError();
    return false;
  }

 private:
  absl::Status CopyAny(void* to, const void* from, size_t bytes) override {
    UseGpu(gpu_);
    return CudaStatus(
        "copy", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, handle_));
  }

  // The mark of a place that could not be marked: Await waits for all work.
  static constexpr uint64_t kUnmarked = std::numeric_limits<uint64_t>::max();

  cudaEvent_t EventOf(uint64_t mark) const {
    return events_[mark % events_.size()];
  }

  const int gpu_;
  GpuMemory& memory_;
  const cudaStream_t handle_;
  std::array<cudaEvent_t, 64> events_ = {};
  std::mutex mutex_;  // guards the members below
  uint64_t last_ = 0;
};

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

}  // namespace

std::string CudaErrorText(int error) {
  cudaGetLastError();
  return cudaGetErrorString(static_cast<cudaError_t>(error));
}

bool CudaDriver::IsExecutor() { return false; }

GpuFacts CudaDriver::FindGpu(int gpu) {
  GpuFacts facts = {.gpu = gpu, .runtime = CUDART_VERSION};
  facts.error = cudaDriverGetVersion(&facts.driver);
  if (facts.driver == 0) return facts;
  facts.error = cudaGetDeviceCount(&facts.gpus);
  int major = 0;
  int minor = 0;
  for (const auto& [value, attribute] :
       {std::pair(&major, cudaDevAttrComputeCapabilityMajor),
        std::pair(&minor, cudaDevAttrComputeCapabilityMinor)}) {
    if (facts.error == cudaSuccess && gpu < facts.gpus) {
      facts.error = cudaDeviceGetAttribute(value, attribute, gpu);
    }
  }
  facts.capability = 10 * major + minor;
  cudaGetLastError();
  return facts;
}

int CudaDriver::Open(int gpu, std::unique_ptr<DeviceQueue>* stream) {
  cudaStream_t handle = nullptr;
  UseGpu(gpu);
  // This creates the context, which an exclusive or a full GPU refuses.
  cudaError_t error = cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking);
  if (error != cudaSuccess) return error;
  auto opened = std::make_unique<GpuStream>(gpu, handle);
  error = opened->CreateEvents();
  *stream = std::move(opened);
  return error;
}

}  // namespace tiercel
