#ifndef TIERCEL_KERNELS_DEVICE_SIM_SIM_QUEUE_H_
#define TIERCEL_KERNELS_DEVICE_SIM_SIM_QUEUE_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "kernels/device/queue.h"
#include "kernels/device/sim/sim_memory.h"
#include "kernels/system/faults.h"

namespace tiercel {

// A queue of a simulated device, whose work a thread of the CPU does as late as
// a GPU may: when a thread waits, or frees memory. Until then the host reads
// 0xff in the target of a copy. The device's memory (SimMemory) faults when the
// host touches it. An array in it starts as NaN; Synchronize reports writes
// after its end, unless they fault (SimBlocks).
//
// With a seed a worker thread of the queue does the work too, after delays that
// follow from it. With -fsanitize=thread memory is open then, and TSan reports
// a race between two queues unless a wait orders them, or between a queue and
// the host unless the host calls the device in between. Without TSan the
// queue's locks order all that, and a fault shows as wrong bytes only.
//
// There are several devices, by numbers. None can touch the memory of another:
// copies between two go through the host.
class SimQueue : public DeviceQueue {
 public:
  // A queue of device number `device`. Errors: those of faults.
  static absl::StatusOr<std::unique_ptr<SimQueue>> Create(int device,
                                                          uint64_t seed = 0);

  // `seed` is that of delays; 0: that of SetSimDelays.
  explicit SimQueue(int device, uint64_t seed = 0);
  ~SimQueue() override;

  CUstream_st* handle() override { return nullptr; }
  DeviceMemory& memory() override { return memory_; }
  int64_t FreeBytes() override { return memory_.FreeBytes(); }
  std::string PciBus() override { return ""; }

  absl::Status Zero(DevicePtr<void> to, size_t bytes) override;
  absl::Status Synchronize() override;
  absl::Status Unpack(const std::byte* packed, const PackedRun* runs,
                      int64_t count) override;
  absl::Status CopyColumns(const ColumnsCopy& p) override;
  uint64_t Mark() override;
  absl::Status Await(uint64_t mark) override;
  absl::Status Check() override;
  absl::Status Pin(std::byte* host, size_t bytes) override;
  void Unpin(std::byte* host) override { memory_.Unpin(host); }
  bool KernelsSee(std::byte* pinned) override;

  // Queues `work`, which returns a cudaError_t; one that is not 0 loses the
  // device. Work `outside` the device runs while its memory is closed, and may
  // wait.
  void Push(std::function<int()> work, bool outside = false);
  // Queues `work` as an op, whose error loses the device.
  absl::Status PushOp(std::function<absl::Status()> work);
  void RunToEnd();
  // Drops the queued work.
  void Forget();

  // Calls use() for the queues of a device for which is() is true. They are not
  // destroyed before, and queues may be created meanwhile.
  static void ForEach(int device, absl::FunctionRef<bool(SimQueue&)> is,
                      absl::FunctionRef<void(SimQueue&)> use);

 protected:
  // Ends the worker and does the queued work; a derived class calls it first in
  // its destructor.
  void Finish();
  // The cudaError_t of a call, which is made if that is 0.
  int ErrorOf(std::string_view call, size_t bytes = 0) const;

 private:
  absl::Status CopyAny(void* to, const void* from, size_t bytes) override;

  // A copy from or to another device, which goes through the host, as neither
  // device may read the other's memory. A null memory is the host's.
  struct PeerCopy {
    SimMemory* source;
    SimMemory* target;
    void* to;
    const void* from;
    size_t bytes;
  };
  struct Work {
    std::function<int()> run = {};
    bool outside = false;
    std::optional<PeerCopy> copy = {};  // in place of `run`
  };
  using Works = std::deque<Work>;

  // The status of a call in the name of `who`.
  virtual absl::Status StatusOf(std::string_view who, int error) const;
  // The reason of the last error that work returned, or "".
  virtual std::string TakeFault();

  static Works::const_iterator CopyThroughHost(Works::const_iterator next,
                                               Works::const_iterator end);
  void Add(Work work);
  void WorkWithDelays(uint64_t seed, const std::stop_token& stop);
  Works TakeUntil(uint64_t mark);
  void RunUntil(uint64_t mark);

  const int device_;
  SimMemory& memory_;
  std::mutex run_mutex_;                // held while queued work is done
  std::string fault_;                   // guarded by run_mutex_
  std::mutex mutex_;                    // guards the queue
  std::condition_variable_any pushes_;  // wakes the worker
  Works queue_;
  uint64_t pushed_ = 0;
  int users_ = 0;          // other threads that use it now
  std::stop_source stop_;  // stops the worker
  std::thread worker_;
};

// Does the queued work of all queues of a device.
void RunSimQueues(int device);

// The cudaError_t that a call to a device returns instead of being made: that
// of a fault (Callee::kDevice), or the error that lost the device. 0: the call
// is made.
int SimErrorOf(std::string_view call, int device, size_t bytes = 0);
// The reason of an error of the device that the calling thread called last.
std::string SimErrorText();

// ---- For tests ----

// Queues that are made from now on have a worker thread, whose delays follow
// from the seed; 0: they have none.
void SetSimDelays(uint64_t seed);

// Makes a lost device usable again, and drops the work that was queued on it.
void RestoreSimDevice(int device);
void RestoreSimDevices();

// Faults of the calls to simulated devices. `fault` gives the cudaError_t of a
// call, or 0, and the call is made; it is called by one thread at a time for a
// device. After an error that loses a device, all calls to that device return
// it, until this begins or ends.
class SimFaults {
 public:
  static constexpr int kAllDevices = -1;

  explicit SimFaults(std::function<int(std::string_view call)> fault,
                     int device = kAllDevices);
  ~SimFaults() { End(); }
  // Ends it before its scope does.
  void End();

 private:
  std::optional<Faults> faults_;
};

// Memory of the host that is pinned for simulated devices.
int64_t SimPinnedBytes();

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_SIM_SIM_QUEUE_H_
