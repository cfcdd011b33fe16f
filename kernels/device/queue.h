#ifndef TIERCEL_KERNELS_DEVICE_QUEUE_H_
#define TIERCEL_KERNELS_DEVICE_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "kernels/device/device_memory.h"

struct CUstream_st;  // a cudaStream_t points to it

namespace tiercel {

struct ColumnsCopy;
struct PackedRun;

// A queue of work on a device that is not done when a call returns: a GPU, or
// one that is simulated. Once the process has lost the device, every call
// returns device_lost.
class DeviceQueue {
 public:
  virtual ~DeviceQueue() = default;

  // The queue for a kernel's launch. It also selects the GPU for the calling
  // thread's next launch. Null: the device has no kernels.
  virtual CUstream_st* handle() = 0;
  virtual DeviceMemory& memory() = 0;
  virtual int64_t FreeBytes() = 0;  // free memory; 0 if it is not known
  // The device's PCI address, as "0000:01:00.0"; empty: not known.
  virtual std::string PciBus() = 0;

  // These do the same as in Stream. One end of a copy may be in the memory of
  // another GPU: the copy goes through the host if one may not read the other.
  absl::Status Copy(DevicePtr<void> to, const void* from, size_t bytes) {
    return CopyAny(to.raw(), from, bytes);
  }
  absl::Status Copy(void* to, DevicePtr<const void> from, size_t bytes) {
    return CopyAny(to, from.raw(), bytes);
  }
  absl::Status Copy(DevicePtr<void> to, DevicePtr<const void> from,
                    size_t bytes) {
    return CopyAny(to.raw(), from.raw(), bytes);
  }
  virtual absl::Status Zero(DevicePtr<void> to, size_t bytes) = 0;
  virtual absl::Status Synchronize() = 0;
  // Copies `count` runs (at least one) from pinned memory of the host to their
  // places. The list is in pinned memory too.
  virtual absl::Status Unpack(const std::byte* packed, const PackedRun* runs,
                              int64_t count) = 0;
  // Copies columns of a matrix.
  virtual absl::Status CopyColumns(const ColumnsCopy& p) = 0;

  // Marks the end of the queue, for Await. Both may be called by any thread.
  // Only the newest marks are kept: Await waits for more than an older one.
  virtual uint64_t Mark() = 0;
  // Returns when all that was queued before `mark` (0: nothing) is done, or has
  // failed (device_failed). The thread sleeps, while Synchronize may keep a
  // processor busy to return sooner.
  virtual absl::Status Await(uint64_t mark) = 0;

  // Checks that this process can still use the device, without waiting. Errors:
  // device_lost.
  virtual absl::Status Check() = 0;

  // Lets the device copy from and to memory of the host by itself, while the
  // host continues. `host` is the start of a page. Errors: device_failed.
  virtual absl::Status Pin(std::byte* host, size_t bytes) = 0;
  virtual void Unpin(std::byte* host) = 0;
  // Returns true if kernels can read pinned memory at the host's address.
  virtual bool KernelsSee(std::byte* pinned) = 0;

 private:
  // Queues a copy; each end is the device's or the host's.
  virtual absl::Status CopyAny(void* to, const void* from, size_t bytes) = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_QUEUE_H_
