#include "kernels/machine/cuda_stream.h"

#include <cuda_runtime_api.h>

#include <array>
#include <limits>
#include <mutex>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/base/error.h"
#include "kernels/machine/cuda_memory.h"

namespace tiercel {
namespace {

// The oldest GPU that CUDA 13 compiles for: Turing.
constexpr int kOldestCapability = 75;

absl::Status NoDevice(std::string_view reason) {
  cudaGetLastError();
  return DeviceError("no_device",
                     absl::StrCat("device cuda: ", std::string(reason)));
}

// "13.0" of 13000.
std::string VersionText(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

absl::Status FindDevice() {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    return NoDevice("this machine has no NVIDIA driver (libcuda.so.1)");
  }
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted == cudaErrorInsufficientDriver) {
    return NoDevice(absl::StrCat("the NVIDIA driver knows CUDA up to ",
                                 VersionText(driver), ", need ",
                                 VersionText(CUDART_VERSION)));
  }
  if (counted == cudaErrorNoDevice || (counted == cudaSuccess && count == 0)) {
    return NoDevice("the NVIDIA driver shows this process no GPU");
  }
  if (counted != cudaSuccess) return NoDevice(cudaGetErrorString(counted));
  int major = 0;
  int minor = 0;
  cudaError_t error =
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
  if (error == cudaSuccess) {
    error =
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0);
  }
  if (error != cudaSuccess) return NoDevice(cudaGetErrorString(error));
  if (10 * major + minor < kOldestCapability) {
    return NoDevice(absl::StrCat("the GPU has compute capability ", major, ".",
                                 minor, ", need 7.5 (Turing) or later"));
  }
  return absl::OkStatus();
}

class GpuStream final : public CudaStream {
 public:
  explicit GpuStream(cudaStream_t handle) : handle_(handle) {}
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
      error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    }
    return error;
  }

  CUstream_st* handle() override { return handle_; }
  DeviceMemory& memory() override { return CudaMemory(); }
  int64_t FreeBytes() override {
    size_t free = 0;
    size_t total = 0;
    if (cudaMemGetInfo(&free, &total) != cudaSuccess) {
      cudaGetLastError();
      return 0;
    }
    return static_cast<int64_t>(free);
  }
  std::string PciBus() override {
    char bus[32] = "";
    if (cudaDeviceGetPCIBusId(bus, sizeof(bus), 0) == cudaSuccess) return bus;
    cudaGetLastError();
    return "";
  }
  absl::Status Copy(void* to, const void* from, size_t bytes) override {
    return CudaStatus(
        "copy", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, handle_));
  }
  absl::Status Zero(void* to, size_t bytes) override {
    return CudaStatus("zero", cudaMemsetAsync(to, 0, bytes, handle_));
  }
  absl::Status Synchronize() override {
    return CudaStatus("device cuda", cudaStreamSynchronize(handle_));
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

  absl::Status Pin(std::byte* host, size_t bytes) override {
    cudaError_t error = cudaHostRegister(host, bytes, cudaHostRegisterMapped);
    if (error != cudaSuccess) return CudaStatus("pin", error);
    void* seen = nullptr;
    error = cudaHostGetDevicePointer(&seen, host, 0);
    if (error == cudaSuccess && seen == host) return absl::OkStatus();
    Unpin(host);
    if (error != cudaSuccess) return CudaStatus("pin", error);
    return DeviceError("device_failed",
                       "pin: the GPU has the host's memory at other addresses");
  }
  void Unpin(std::byte* host) override { cudaHostUnregister(host); }

 private:
  // Who waits for it waits for all there is.
  static constexpr uint64_t kUnmarked = std::numeric_limits<uint64_t>::max();

  cudaEvent_t EventOf(uint64_t mark) const {
    return events_[mark % events_.size()];
  }

  const cudaStream_t handle_;
  std::array<cudaEvent_t, 64> events_ = {};
  std::mutex mutex_;  // of the rest
  uint64_t last_ = 0;
};

}  // namespace

absl::Status CudaStatus(std::string_view who, int error) {
  if (error == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();
  return DeviceError(
      "device_failed",
      absl::StrCat(std::string(who), ": CUDA error ", error, ", ",
                   cudaGetErrorString(static_cast<cudaError_t>(error))));
}

bool CudaStream::IsPlayed() { return false; }

absl::StatusOr<std::unique_ptr<CudaStream>> CudaStream::Create() {
  if (absl::Status s = FindDevice(); !s.ok()) return s;
  cudaStream_t handle = nullptr;
  // Makes the context, which an exclusive or a full GPU refuses.
  cudaError_t error = cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking);
  if (error != cudaSuccess) return NoDevice(cudaGetErrorString(error));
  auto stream = std::make_unique<GpuStream>(handle);
  error = stream->CreateEvents();
  if (error != cudaSuccess) return NoDevice(cudaGetErrorString(error));
  return stream;
}

}  // namespace tiercel
