#ifndef TIERCEL_RUNTIME_MACHINE_MACHINE_H_
#define TIERCEL_RUNTIME_MACHINE_MACHINE_H_

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/machine/clock.h"
#include "kernels/machine/cuda_stream.h"
#include "kernels/machine/device_memory.h"
#include "kernels/machine/nccl.h"
#include "kernels/machine/stream.h"
#include "kernels/machine/thread_pool.h"
#include "offload/move/link.h"
#include "offload/tier/bounded_memory.h"
#include "offload/tier/faults.h"
#include "offload/tier/memory_promise.h"
#include "offload/tier/placement.h"

namespace tiercel {

const char* NameOf(Device device);

// The speed of the link between host and device.
struct LinkRate {
  double bytes_per_s = 0;
  double latency_s = 0;  // per transfer
};

// The hardware that computes models: a device with its memory and its threads,
// the host tier beside it, and the link between the two. Models that are opened
// on one machine share all of it, so that one budget holds them and their
// sessions. Thread-safe.
class Machine {
 public:
  // A small device behind a slow link, simulated on this machine, or on a GPU
  // that has more: memory and copies obey the numbers, arithmetic is its own.
  struct Simulation {
    int64_t device_bytes = 0;
    double link_bytes_per_s = 0;
    double latency_s = 0;  // per transfer
    std::shared_ptr<const Faults> faults = nullptr;
  };

  struct Options {
    Device device = Device::kCpu;
    int threads = 0;  // 0: as many as the process may use
    std::optional<Simulation> simulation = {};
    // The most memory to take: of a GPU's, or of this machine's for both tiers
    // together; 0: no limit.
    int64_t device_memory_bytes = 0;
    // The most memory that the host tier may take; in place, that both tiers
    // may take; 0: no limit.
    int64_t host_memory_bytes = 0;
    Clock* clock = &SteadyClock();  // for sessions' times and a simulated link
    // Moves data between several GPUs; absent: libnccl, if it can be loaded.
    std::optional<NcclFunctions> nccl = {};
  };

  // This is one of `ranks` machines that compute a model together. They share
  // this machine's threads and memory, and the limit on GPU memory, equally;
  // each has a GPU, or a simulated device, of its own.
  explicit Machine(const Options& options, int rank = 0, int ranks = 1)
      : options_(options),
        rank_(rank),
        ranks_(ranks),
        account_(std::make_shared<MemoryAccount>([this] { return Room(); })),
        kv_account_(std::make_shared<MemoryAccount>([this] {
          return in_place()
                     ? Room()
                     : std::min(Room(), HostBudget() - kv_account_->promised());
        })) {}
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Finds the GPU, if the device is one, or checks that it is still there.
  // Errors: no_device; device_lost; cannot_split, if there are fewer GPUs than
  // ranks.
  absl::Status FindDevice();
  // Calls FindDevice, and takes the memory of a simulated device, once. Errors:
  // also out_of_memory.
  absl::Status TakeMemory();
  // The memory that holds weights, sessions and their workspaces; before
  // TakeMemory it holds nothing.
  DeviceMemory& memory() const;

  // A stream on the device, with its scratch in `scratch`; the machine outlives
  // it. All streams share the machine's threads, of which each process has its
  // own. Errors: those of FindDevice and Stream::Create.
  absl::StatusOr<std::unique_ptr<Stream>> NewStream(DeviceMemory& scratch);
  absl::StatusOr<std::unique_ptr<Stream>> NewStream() {
    return NewStream(memory());
  }
  Device device() const { return options_.device; }
  // The number of threads that a stream asks for, at least one; the system may
  // refuse some.
  int threads() const;

  // Returns true if the device computes in the host tier's memory, so that
  // nothing crosses a link.
  bool in_place() const { return !simulated() && !has_queue(); }
  // Returns true if the device's work is done later, in memory of its own.
  bool has_queue() const {
    return device() == Device::kCuda || device() == Device::kSim;
  }
  bool simulated() const { return options_.simulation.has_value(); }
  // Absent if the rate is not known: in place there is no link, and the rate of
  // a GPU's link is found out by use.
  std::optional<LinkRate> link() const;
  // The faults that a simulated device injects; null: none.
  std::shared_ptr<const Faults> faults() const {
    return simulated() ? options_.simulation->faults : nullptr;
  }
  // These make, for one host tier behind a link, the placement of its memory
  // and the link that copies. Errors: no_device.
  std::shared_ptr<Placement> NewPlacement() const;
  absl::StatusOr<std::unique_ptr<Link>> NewLink(
      std::shared_ptr<Placement> placement) const;

  // This much of a GPU's memory stays free: its driver gives out whole blocks
  // of 2 MiB, of which a session's arrays waste up to one each, and loads a
  // kernel where it is first launched; libraries take some, and so may the
  // desktop.
  static constexpr int64_t kGpuReserve = int64_t{512} << 20;

  // The memory of this machine that was promised to sessions: for KV in the
  // host tier, and for all else.
  const std::shared_ptr<MemoryAccount>& kv_account() const {
    return kv_account_;
  }
  const std::shared_ptr<MemoryAccount>& account() const { return account_; }
  int64_t Promised() const {
    return account_->promised() + kv_account_->promised();
  }
  // Bytes of this machine's memory that its models and sessions have taken or
  // may still take.
  int64_t Committed() const;

  // The memory that may be used, including what is already taken or promised:
  // of the device (in place: of both tiers), and of this machine's memory: by
  // both tiers together, or, with a GPU, by the host tier.
  int64_t DeviceBudget() const;
  int64_t MemoryBudget() const;
  // The most that the host tier may take behind a link, and whether the user
  // set that limit.
  int64_t HostBudget() const;
  bool host_is_bounded() const { return options_.host_memory_bytes > 0; }

  Clock& clock() const { return *options_.clock; }
  const std::optional<NcclFunctions>& nccl() const { return options_.nccl; }

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

 private:
  void ForgetPoolOfParent();
  absl::Status FindGpu();
  int64_t Budget(int64_t free, int64_t taken) const;
  int64_t FreeMemory() const;
  int64_t Room() const { return MemoryBudget() - Committed(); }
  DeviceQueue* gpu() const;  // null: none; it stays as long as the machine

  const Options options_;
  const int rank_;
  const int ranks_;
  const std::shared_ptr<MemoryAccount> account_;
  const std::shared_ptr<MemoryAccount> kv_account_;
  mutable HeapMemory heap_;
  mutable std::mutex mutex_;  // guards the members below
  // The queue of all that a GPU computes; null: no GPU, or not needed yet.
  std::unique_ptr<DeviceQueue> gpu_;
  std::unique_ptr<BoundedMemory> simulated_;  // null: no simulated device
  std::unique_ptr<ThreadPool> pool_;          // null: not needed yet
  pid_t pool_process_ = 0;                    // the process that has them
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_MACHINE_MACHINE_H_
