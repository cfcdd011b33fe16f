#include "kernels/device/executor/hosted_stream.h"

#include <mutex>
#include <string>
#include <utility>

#include "kernels/device/copies.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/sim/sim_queue.h"

namespace tiercel {
namespace {

// The facts about these devices, as the machine reports them.
struct HostedFacts {
  std::mutex mutex;
  GpuFacts facts = kHostedGpu;

  static HostedFacts& Get() {
    static HostedFacts* const own = new HostedFacts;
    return *own;
  }
};

// A queue that also takes launches of kernels, which the executor runs.
class HostedQueue final : public SimQueue {
 public:
  HostedQueue(int gpu, Order order)
      : SimQueue(gpu),
        handle_{HostExecutor(order), [this](std::function<int()> kernel) {
                  const int error = ErrorOf("launch");
                  if (error == 0) Push(std::move(kernel));
                  return error;
                }} {}
  ~HostedQueue() override { Finish(); }

  CUstream_st* handle() override { return &handle_; }
#ifndef __SANITIZE_THREAD__  // a program for TSan has no kernels
  absl::Status Unpack(const std::byte* packed, const PackedRun* runs,
                      int64_t count) override {
    return CudaStatus("Unpack", UnpackCuda(&handle_, packed, runs, count));
  }
  absl::Status CopyColumns(const ColumnsCopy& p) override {
    return CudaStatus("Gather", CopyColumnsCuda(&handle_, p));
  }
#endif

 private:
  absl::Status StatusOf(std::string_view who, int error) const override {
    return CudaStatus(who == "device" ? "device cuda" : who, error);
  }
  std::string TakeFault() override { return HostExecutor::TakeFault(); }

  CUstream_st handle_;
};

// Calls use() for the queue with this handle, if it still exists.
void WithThat(const CUstream_st* handle,
              absl::FunctionRef<void(SimQueue&)> use) {
  for (int gpu = 0; gpu < SimMemory::kMostDevices; ++gpu) {
    SimQueue::ForEach(
        gpu, [handle](SimQueue& queue) { return queue.handle() == handle; },
        use);
  }
}

}  // namespace

void QueueHostedWork(CUstream_st* stream, std::function<int()> work) {
  WithThat(stream,
           [&](SimQueue& own) { own.Push(std::move(work), /*outside=*/true); });
}

void RunHostedStream(CUstream_st* stream) {
  WithThat(stream, [](SimQueue& own) { own.RunToEnd(); });
}

bool CudaDriver::IsExecutor() { return true; }

absl::StatusOr<GpuFacts> CudaDriver::FindGpu(int gpu) {
  HostedFacts& own = HostedFacts::Get();
  const std::lock_guard lock(own.mutex);
  GpuFacts facts = own.facts;
  facts.gpu = gpu;
  return facts;
}

int CudaDriver::Open(int gpu, std::unique_ptr<DeviceQueue>* queue) {
  const int error = SimErrorOf("create", gpu);
  if (error == 0) {
    *queue = std::make_unique<HostedQueue>(gpu, Order::kAscending);
  }
  return error;
}

std::string CudaErrorText(int /*error*/) {
  const std::string fault = HostExecutor::TakeFault();
  return fault.empty() ? SimErrorText() : fault;
}

void SetHostedGpu(const GpuFacts& facts) {
  HostedFacts& own = HostedFacts::Get();
  const std::lock_guard lock(own.mutex);
  own.facts = facts;
}

std::unique_ptr<Stream> MakeHostedStream(Order order, int gpu) {
  RestoreSimDevice(gpu);
  return *Stream::Over(std::make_unique<HostedQueue>(gpu, order));
}

}  // namespace tiercel
