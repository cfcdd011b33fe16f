#ifndef TIERCEL_RUNTIME_MACHINE_MACHINE_H_
#define TIERCEL_RUNTIME_MACHINE_MACHINE_H_

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device/cuda/nccl.h"
#include "kernels/device/device.h"
#include "kernels/device/device_memory.h"
#include "kernels/device/stream.h"
#include "kernels/system/clock.h"
#include "kernels/system/thread_pool.h"
#include "offload/move/link.h"
#include "offload/tier/memory_promise.h"
#include "offload/tier/placement.h"

namespace tiercel {

// The hardware that computes models: a device with its memory and its threads,
// the host tier beside it, and the link between the two. Models that are opened
// on one machine share all of it, so that one budget holds them and their
// sessions. Thread-safe.
class Machine {
 public:
  struct Options {
    DeviceKind device = DeviceKind::kCpu;
    int threads = 0;  // 0: as many as the process may use
    // A small device behind a slow link, which this one simulates.
    std::optional<DeviceLimits> simulation = {};
    uint64_t sim_seed = 0;  // seeds the delays of a kSim device; 0: none
    // The most memory to take: of a GPU's, or of this machine's for both tiers
    // together; 0: no limit.
    int64_t device_memory_bytes = 0;
    // The most memory that the host tier may take; in place, that both tiers
    // may take; 0: no limit.
    int64_t host_memory_bytes = 0;
    // A GPU may compute prompts with other bits than the CPU's, if that is
    // faster (Stream::fast_prompts).
    bool fast_prompts = false;
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
        device_(Device::Make(options.device, rank, options.simulation,
                             options.sim_seed)),
        account_(std::make_shared<MemoryAccount>([this] { return Room(); })),
        kv_account_(std::make_shared<MemoryAccount>([this] {
          return device_->in_place()
                     ? Room()
                     : std::min(Room(), MostOfHost() - kv_account_->promised());
        })) {}
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // The questions about it may be asked at any time.
  const Device& device() const { return *device_; }
  // Finds the device, or checks that it is still there. Errors: no_device;
  // device_lost; cannot_split, if there are fewer GPUs than ranks.
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
  // A stream on the CPU beside the device, with the same threads.
  absl::StatusOr<std::unique_ptr<Stream>> NewHostStream();
  // The number of threads that a stream asks for, at least one; the system may
  // refuse some.
  int threads() const;
  // The number of them that work.
  int threads_in_use() const;
  // Has only this rank's share of `threads` work, from the next operation on.
  // May be called at any time. Errors: invalid_threads, if they are no threads
  // or more than were asked for.
  absl::Status UseThreads(int threads);

  // These make, for one host tier behind a link, the placement of its memory
  // and the link that copies. Errors: no_device.
  std::shared_ptr<Placement> NewPlacement() const;
  absl::StatusOr<std::unique_ptr<Link>> NewLink(
      std::shared_ptr<Placement> placement) const;

  // The memory of this machine that was promised to sessions (PromisedBytesOn):
  // for KV in the host tier, and for all else.
  const std::shared_ptr<MemoryAccount>& kv_account() const {
    return kv_account_;
  }
  const std::shared_ptr<MemoryAccount>& account() const { return account_; }
  // Bytes of this machine's memory that its models and sessions have taken or
  // may still take.
  int64_t Committed() const;

  // The memory that may be used, including what is already taken or promised:
  // of the device (in place: of both tiers), and of this machine's memory: by
  // both tiers together, or, with a GPU, by the host tier.
  int64_t DeviceBudget() const;
  int64_t MemoryBudget() const;
  // The most that the host tier may take behind a link; absent: the user set no
  // limit.
  std::optional<int64_t> HostBudget() const;

  // The arithmetic of prompts: "exact", or "fast", "cublaslt" or both, and the
  // kind of GPU, among which their bits differ.
  std::string PromptArithmetic() const;

  Clock& clock() const { return *options_.clock; }
  const std::optional<NcclFunctions>& nccl() const { return options_.nccl; }

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

 private:
  void ForgetPoolOfParent();
  ThreadPool& Pool();
  int AllThreads() const;
  absl::Status FindLocked();
  // Null: the device has none; it stays as long as the machine.
  DeviceQueue* queue() const;
  int64_t Budget(int64_t free, int64_t taken) const;
  int64_t FreeMemory() const;
  int64_t MostOfHost() const {
    return HostBudget().value_or(std::numeric_limits<int64_t>::max());
  }
  int64_t Room() const { return MemoryBudget() - Committed(); }
  bool FastPrompts() const {
    return options_.fast_prompts && device_->traits().runs_kernels();
  }

  const Options options_;
  const int rank_;
  const int ranks_;
  const std::unique_ptr<Device> device_;
  // The simulated link's, if there is one.
  const std::shared_ptr<SimulatedWire> wire_ =
      std::make_shared<SimulatedWire>();
  const std::shared_ptr<MemoryAccount> account_;
  const std::shared_ptr<MemoryAccount> kv_account_;
  mutable std::mutex mutex_;          // guards the device and the members below
  std::unique_ptr<ThreadPool> pool_;  // null: not needed yet
  pid_t pool_process_ = 0;            // the process that has them
  int most_in_use_ = std::numeric_limits<int>::max();
};

// The bytes of a machine's memory that were promised to its sessions.
inline int64_t PromisedBytesOn(const Machine& machine) {
  return machine.account()->promised() + machine.kv_account()->promised();
}

// The share of a machine's DeviceBudget that a block of `bytes` takes.
int64_t TakenBytesOn(const Machine& machine, int64_t bytes);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_MACHINE_MACHINE_H_
