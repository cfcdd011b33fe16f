#include <array>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "kernels/device/copies.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/cuda/cuda_error.h"
#include "kernels/device/cuda/cuda_memory.h"
#include "kernels/device/cuda/cuda_module.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

class GpuStream final : public DeviceQueue {
 public:
  GpuStream(int gpu, CUstream_st* handle)
      : gpu_(gpu), memory_(CudaMemory(gpu)), handle_(handle) {}
  ~GpuStream() override {
    cuda_.wait_for_stream(handle_);
    for (CUevent_st* event : events_) {
      if (event != nullptr) cuda_.destroy_event(event);
    }
    cuda_.destroy_stream(handle_);
  }
  int CreateEvents() {
    int error = kCudaSuccess;
    for (CUevent_st*& event : events_) {
      if (error != kCudaSuccess) break;
      error = cuda_.create_event(&event);
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
    if (cuda_.pci_bus(gpu_, bus, sizeof(bus)) == kCudaSuccess) return bus;
    cuda_.clear_error();
    return "";
  }
  absl::Status Zero(DevicePtr<void> to, size_t bytes) override {
    UseGpu(gpu_);
    return CudaStatus("zero", cuda_.queue_zero(handle_, to.raw(), bytes));
  }
  absl::Status Synchronize() override {
    return CudaStatus("device cuda", cuda_.wait_for_stream(handle_));
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
    if (cuda_.record(EventOf(mark), handle_) != kCudaSuccess) {
      cuda_.clear_error();
      return kUnmarked;
    }
    return last_ = mark;
  }
  absl::Status Await(uint64_t mark) override {
    if (mark == 0) return absl::OkStatus();
    if (mark == kUnmarked) return Synchronize();
    return CudaStatus("device cuda", cuda_.wait_for_event(EventOf(mark)));
  }

  absl::Status Check() override {
    const int error = cuda_.query_stream(handle_);
    if (error == kCudaNotReady) {
      cuda_.clear_error();
      return absl::OkStatus();
    }
    return CudaStatus("device cuda", error);
  }

  absl::Status Pin(std::byte* host, size_t bytes) override {
    UseGpu(gpu_);
    return CudaStatus("pin", cuda_.pin(host, bytes));
  }
  void Unpin(std::byte* host) override { cuda_.unpin(host); }
  bool KernelsSee(std::byte* pinned) override {
    void* seen = nullptr;
    UseGpu(gpu_);
    if (cuda_.address_of_pinned(&seen, pinned) == kCudaSuccess) {
      return seen == pinned;
    }
    cuda_.clear_error();
    return false;
  }

 private:
  absl::Status CopyAny(void* to, const void* from, size_t bytes) override {
    UseGpu(gpu_);
    return CudaStatus("copy", cuda_.queue_copy(handle_, to, from, bytes));
  }

  // The mark of a place that could not be marked: Await waits for all work.
  static constexpr uint64_t kUnmarked = std::numeric_limits<uint64_t>::max();

  CUevent_st* EventOf(uint64_t mark) const {
    return events_[mark % events_.size()];
  }

  const CudaCalls& cuda_ = Cuda();
  const int gpu_;
  GpuMemory& memory_;
  CUstream_st* const handle_;
  std::array<CUevent_st*, 64> events_ = {};
  std::mutex mutex_;  // guards the members below
  uint64_t last_ = 0;
};

}  // namespace

// In a program for tests the host executor's functions take the place of these.

[[gnu::weak]] std::string CudaErrorText(int error) {
  if (!OwnCudaModule().ok()) return "no CUDA module is open";
  Cuda().clear_error();
  return Cuda().error_text(error);
}

[[gnu::weak]] bool CudaDriver::IsExecutor() { return false; }

[[gnu::weak]] absl::StatusOr<GpuFacts> CudaDriver::FindGpu(int gpu) {
  RETURN_IF_ERROR(OwnCudaModule().status());
  const CudaCalls& cuda = Cuda();
  GpuFacts facts = {.gpu = gpu, .runtime = cuda.runtime};
  facts.error = cuda.driver_version(&facts.driver);
  if (facts.driver == 0) return facts;
  facts.error = cuda.count_gpus(&facts.gpus);
  if (facts.error == kCudaSuccess && gpu < facts.gpus) {
    facts.error = cuda.capability(gpu, &facts.capability);
  }
  cuda.clear_error();
  return facts;
}

[[gnu::weak]] int CudaDriver::Open(int gpu,
                                   std::unique_ptr<DeviceQueue>* stream) {
  CUstream_st* handle = nullptr;
  UseGpu(gpu);
  // This creates the context, which an exclusive or a full GPU refuses.
  int error = Cuda().create_stream(&handle);
  if (error != kCudaSuccess) return error;
  auto opened = std::make_unique<GpuStream>(gpu, handle);
  error = opened->CreateEvents();
  *stream = std::move(opened);
  return error;
}

}  // namespace tiercel
