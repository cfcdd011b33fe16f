#ifndef TIERCEL_KERNELS_DEVICE_STREAM_H_
#define TIERCEL_KERNELS_DEVICE_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/device/device_kind.h"
#include "kernels/device/device_memory.h"
#include "kernels/system/isa.h"
#include "kernels/system/thread_pool.h"
#include "lib/status/status_macros.h"

namespace tiercel {

class BlasLt;
struct ColumnsCopy;
class DeviceQueue;
class SendRing;
class SimQueue;

// The device on which ops run, with its instruction set, threads and scratch
// memory. Ops on one stream run in the order of the calls. A stream is used by
// one thread at a time, and must live longer than the work queued on it.
class Stream {
 public:
  struct Options {
    DeviceKind device = DeviceKind::kCpu;
    int threads = 0;  // threads of the CPU; 0: as many as the process may use
    DeviceMemory* memory = nullptr;  // for scratch; null: the device's own
    ThreadPool* pool = nullptr;      // must outlive it; null: one of `threads`
    // The device's queue to share, which must outlive this stream; null: a
    // queue of its own, if the device has one.
    DeviceQueue* queue = nullptr;
    bool fast_prompts = false;  // a GPU's stream has a use for it
  };

  // Errors: TIERCEL_ISA names an ISA that is not supported; no_device; on
  // kCuda, unless the host executor runs kernels, those of
  // BlasLt::FromEnvironment.
  static absl::StatusOr<std::unique_ptr<Stream>> Create(const Options& options);
  // Creates a stream on kCuda over `queue`, for tests that bring their own.
  static absl::StatusOr<std::unique_ptr<Stream>> Over(
      std::unique_ptr<DeviceQueue> queue);

  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  DeviceKind device() const { return device_; }
  // If true, the memory of the device is the host's, and an op is done when it
  // returns.
  bool on_host() const { return queue_ == nullptr; }
  Isa isa() const { return isa_; }
  ThreadPool& pool() { return pool_; }
  DeviceQueue& queue() { return *queue_; }  // only if not on_host()
  DeviceMemory& memory() { return memory_; }
  // Returns true if rows of prompts may be computed by a GPU's matrix unit
  // where that is faster, with bits that are not the CPU's.
  bool fast_prompts() const { return fast_prompts_; }
  // The library that multiplies prompts by F16 and BF16 weights on kCuda, which
  // may be faster but has other bits; null: kernels do.
  BlasLt* blas() { return blas_.get(); }
  void UseBlas(std::unique_ptr<BlasLt> blas);

  // Returns at least `bytes` of scratch memory, 64-byte aligned, with undefined
  // contents. The next call invalidates it, so an op calls this once and
  // divides the memory. Errors: out_of_memory.
  absl::StatusOr<DevicePtr<std::byte>> Scratch(size_t bytes);
  // These pass the memory of Scratch to another stream of the same queue, which
  // may use it while no call of this one is under way.
  void UseScratch(DeviceArray<std::byte> scratch) {
    scratch_ = std::move(scratch);
  }
  DeviceArray<std::byte> ReleaseScratch() {
    return std::exchange(scratch_, {});
  }

  // Queue a copy to the device, to the host, or within the device's memory.
  // Neither end may be changed until Synchronize, except that pageable memory
  // of the host has been read when Copy returns.
  absl::Status Copy(DevicePtr<void> to, const void* from, size_t bytes);
  absl::Status Copy(void* to, DevicePtr<const void> from, size_t bytes);
  absl::Status Copy(DevicePtr<void> to, DevicePtr<const void> from,
                    size_t bytes);
  // Queues a copy of columns within the device's memory; a GPU does it in one
  // launch.
  absl::Status CopyColumns(const ColumnsCopy& p);
  // Queues a copy of a kernel's parameters. `from` has been read when it
  // returns. Lists of up to SendRing::kMostBytes do not wait for copies of
  // other queues.
  absl::Status Send(DevicePtr<void> to, const void* from, size_t bytes);
  // Queues `body` on a simulated device, which calls it with a stream of the
  // CPU. Scratch memory of that stream is the host's.
  absl::Status RunLater(std::function<absl::Status(Stream& cpu)> body);
  // Queues setting `bytes` to zero.
  absl::Status Zero(DevicePtr<void> to, size_t bytes);
  // Returns when all queued work is done, or has failed (device_failed).
  absl::Status Synchronize();

 private:
  Stream(const Options& options, Isa isa, std::unique_ptr<DeviceQueue> queue);

  const DeviceKind device_;
  const Isa isa_;
  const bool fast_prompts_;
  const std::unique_ptr<DeviceQueue> own_queue_;  // null: another's is used
  DeviceQueue* const queue_;                      // null: this is on the host
  const std::unique_ptr<SendRing> ring_;          // null: not a GPU
  std::unique_ptr<BlasLt> blas_;
  const std::unique_ptr<ThreadPool> own_pool_;  // null: another's is used
  ThreadPool& pool_;
  DeviceMemory& memory_;
  DeviceArray<std::byte> scratch_;
  // Runs the ops of a simulated device; null: this is none.
  const std::unique_ptr<Stream> cpu_;
};

// Sends a copy of `count` elements to scratch memory, for a kernel. Errors:
// out_of_memory, device_failed.
template <typename T>
absl::StatusOr<DevicePtr<const T>> SendToScratch(Stream& stream, const T* from,
                                                 int64_t count) {
  const size_t bytes = static_cast<size_t>(count) * sizeof(T);
  ASSIGN_OR_RETURN(const DevicePtr<std::byte> scratch, stream.Scratch(bytes));
  RETURN_IF_ERROR(stream.Send(scratch, from, bytes));
  return scratch.As<const T>();
}

// Waits for all queued work and reads the contents of an array. Errors: those
// of Copy and Synchronize.
template <typename T>
absl::Status ReadBack(Stream& stream, const DeviceArray<T>& array,
                      std::vector<T>* to) {
  to->resize(array.size());
  RETURN_IF_ERROR(
      stream.Copy(to->data(), array.data(), array.size() * sizeof(T)));
  return stream.Synchronize();
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_STREAM_H_
