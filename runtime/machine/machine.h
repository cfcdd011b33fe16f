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

// What the way between host and device can do.
struct LinkRate {
  double bytes_per_s = 0;
  double latency_s = 0;  // per transfer
};

// What models are computed on: a device with its memory and its threads, the
// host tier beside it, and the link between the two. Models that are opened on
// one machine share all of it, so that one budget holds them and their
// sessions. Thread-safe.
class Machine {
 public:
  // A small device behind a slow link, played by this machine, or by a GPU that
  // has more: memory and copies obey the numbers, arithmetic is its own.
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
    // Most to take: of a GPU's memory, or of this machine's by both tiers; 0:
    // all there is.
    int64_t device_memory_bytes = 0;
    // Most that the host tier may take; in place, that both tiers may: 0: all
    // there is.
    int64_t host_memory_bytes = 0;
    Clock* clock = &SteadyClock();  // of sessions' times and a played link
    // What moves between several GPUs; absent: libnccl, where it is and serves.
    std::optional<NcclFunctions> nccl = {};
  };

  // This is one of `ranks` machines that compute a model together, each a
  // device of its own. They share this machine's threads and memory, and what
  // of a GPU's is let be taken, equally; each has a GPU of its own, and what is
  // simulated.
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

  // Finds the GPU, where that is the device, or sees whether it is there still.
  // Errors: no_device; device_lost; cannot_split, where there are fewer GPUs
  // than ranks.
  absl::Status FindDevice();
  // Does so, and takes the memory of a device that is played, once. Errors:
  // out_of_memory too.
  absl::Status TakeMemory();
  // Where weights, sessions and what they compute on live; before TakeMemory
  // it holds nothing.
  DeviceMemory& memory() const;

  // A stream on the device, with its scratch in `scratch`; the machine outlives
  // it. All streams share the machine's threads, of which each process has its
  // own. Errors: those of FindDevice and Stream::Create.
  absl::StatusOr<std::unique_ptr<Stream>> NewStream(DeviceMemory& scratch);
  absl::StatusOr<std::unique_ptr<Stream>> NewStream() {
    return NewStream(memory());
  }
  Device device() const { return options_.device; }
  // As many as a stream is to have, one at least; the system may refuse some.
  int threads() const;

  // The device computes where the host tier is: nothing crosses a link.
  bool in_place() const { return !simulated() && !on_gpu(); }
  bool simulated() const { return options_.simulation.has_value(); }
  // Absent where it is not known: in place there is none, and a GPU's is found
  // out by use.
  std::optional<LinkRate> link() const;
  // What is refused where a device is played; null: nothing.
  std::shared_ptr<const Faults> faults() const {
    return simulated() ? options_.simulation->faults : nullptr;
  }
  // For one host tier, where there is a link: where its memory goes, and who
  // copies. Errors: no_device.
  std::shared_ptr<Placement> NewPlacement() const;
  absl::StatusOr<std::unique_ptr<Link>> NewLink(
      std::shared_ptr<Placement> placement) const;

  // This much of a GPU's memory stays free: its driver gives out whole blocks
  // of 2 MiB, of which a session's arrays waste up to one each, and loads a
  // kernel where it is first launched; libraries take some, and so may the
  // desktop.
  static constexpr int64_t kGpuReserve = int64_t{512} << 20;

  // What sessions may take of this machine's memory in time: of the host tier
  // for KV, and for all else.
  const std::shared_ptr<MemoryAccount>& kv_account() const {
    return kv_account_;
  }
  const std::shared_ptr<MemoryAccount>& account() const { return account_; }
  int64_t Promised() const {
    return account_->promised() + kv_account_->promised();
  }
  // What of it models and sessions here have taken, and may take yet.
  int64_t Committed() const;

  // What may be taken, what is taken or promised already included: of the
  // device (in place: of both tiers), and of this machine's memory: by both
  // tiers together, or, of a GPU, by the host tier.
  int64_t DeviceBudget() const;
  int64_t MemoryBudget() const;
  // Most that the host tier may take, behind a link, and whether that was said.
  int64_t HostBudget() const;
  bool host_is_bounded() const { return options_.host_memory_bytes > 0; }

  Clock& clock() const { return *options_.clock; }
  const std::optional<NcclFunctions>& nccl() const { return options_.nccl; }

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

 private:
  void ForgetPoolOfParent();
  bool on_gpu() const { return device() == Device::kCuda; }
  absl::Status FindGpu();
  int64_t Budget(int64_t free, int64_t taken) const;
  int64_t FreeMemory() const;
  int64_t Room() const { return MemoryBudget() - Committed(); }
  CudaStream* gpu() const;  // null: none; it stays as long as the machine

  const Options options_;
  const int rank_;
  const int ranks_;
  const std::shared_ptr<MemoryAccount> account_;
  const std::shared_ptr<MemoryAccount> kv_account_;
  mutable HeapMemory heap_;
  mutable std::mutex mutex_;  // of the rest
  // The queue of all that a GPU computes; null: none, or it was not needed yet.
  std::unique_ptr<CudaStream> gpu_;
  std::unique_ptr<BoundedMemory> played_;  // null: all the memory there is
  std::unique_ptr<ThreadPool> pool_;       // null: not needed yet
  pid_t pool_process_ = 0;                 // whose threads those are
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_MACHINE_MACHINE_H_
