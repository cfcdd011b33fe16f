#ifndef TIERCEL_KERNELS_BASE_STREAM_H_
#define TIERCEL_KERNELS_BASE_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/base/device_memory.h"
#include "kernels/base/isa.h"
#include "kernels/base/thread_pool.h"

namespace tiercel {

enum class Device {
  kCpu,  // fast bodies; the reference where an op has none
  kRef,  // every op by its plain reference
};

// Where ops run: a device, its instruction-set level, its threads and its
// scratch memory. Ops on one stream run in the order of the calls; a stream is
// used from one thread at a time. Lives longer than anything queued on it.
class Stream {
 public:
  struct Options {
    Device device = Device::kCpu;
    int threads = 0;                 // 0: as many as the process may use
    DeviceMemory* memory = nullptr;  // of scratch; null: the system's
  };

  // Errors: TIERCEL_ISA names a level that is not there.
  static absl::StatusOr<std::unique_ptr<Stream>> Create(const Options& options);

  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Device device() const { return device_; }
  Isa isa() const { return isa_; }
  ThreadPool& pool() { return pool_; }

  // At least `bytes` of scratch memory, 64-byte aligned, contents undefined.
  // The next call of Scratch ends its life: an op asks once and divides.
  // Errors: out_of_memory.
  absl::StatusOr<std::byte*> Scratch(size_t bytes);

 private:
  Stream(const Options& options, Isa isa);

  const Device device_;
  const Isa isa_;
  ThreadPool pool_;
  DeviceMemory& memory_;
  DeviceArray<std::byte> scratch_;
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_BASE_STREAM_H_
