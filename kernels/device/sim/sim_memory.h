#ifndef TIERCEL_KERNELS_DEVICE_SIM_SIM_MEMORY_H_
#define TIERCEL_KERNELS_DEVICE_SIM_SIM_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "kernels/device/cuda/gpu_memory.h"
#include "kernels/device/sim/sim_blocks.h"

namespace tiercel {

// The memory of a simulated device, which the host must not touch: an access
// faults unless the memory is open (WhileOpen). One device's memory is open at
// a time, so that no device can read another's. (For TSan all memory is open.)
class SimMemory final : public GpuMemory {
 public:
  // The host executor's GPUs have numbers below kFirstDense, and blocks that
  // end at a page that faults, for kernels too (SimBlocks::Guarded).
  static constexpr int kFirstDense = 64;
  static constexpr int kMostDevices = 2 * kFirstDense;

  static SimMemory& Get(int device = 0);
  // The memory that has the address; null: it is no device's.
  static SimMemory* Holder(const void* address);

  // The size of the memory, which counts as a GPU's does, but only for GPUs of
  // the host executor. 0: the host's free memory is its own.
  void SetSize(int64_t bytes) { size_ = bytes; }
  int64_t TakenBytes(int64_t bytes) const override;
  int64_t FreeBytes() override;
  // These two wait for all queued work, as those of CUDA do.
  void Free(DevicePtr<std::byte> data, size_t bytes) override;
  absl::Status Copy(DevicePtr<void> to, DevicePtr<const void> from,
                    size_t bytes) override;

  // Pins memory of the host, which the device then reads and writes by itself.
  // Errors: device_failed if some of it is pinned already.
  absl::Status Pin(std::byte* host, size_t bytes);
  void Unpin(std::byte* host);
  bool IsPinned(const void* host);
  int64_t PinnedBytes();

  // Calls work() while the memory is open. work() must neither allocate nor
  // free, nor wait.
  void WhileOpen(absl::FunctionRef<void()> work);

  // Errors: device_failed if something was written after the end of a block.
  absl::Status Check();

 private:
  int Take(size_t bytes, std::byte** data) override;

  explicit SimMemory(int device);
  // The mutex that all devices share.
  static std::mutex& Mutex();

  const int device_;
  std::atomic<int64_t> size_{0};
  const std::unique_ptr<SimBlocks> blocks_;
  AddressRanges pinned_;
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_SIM_SIM_MEMORY_H_
