#include "runtime/machine/machine.h"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/device/sim_queue.h"
#include "kernels/machine/resource_limits.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "offload/move/gpu_link.h"

namespace tiercel {

const char* NameOf(Device device) {
  switch (device) {
    case Device::kCpu:
      return "cpu";
    case Device::kRef:
      return "ref";
    case Device::kCuda:
      return "cuda";
    case Device::kSim:
      return "sim";
  }
  return "";
}

Machine::~Machine() { ForgetPoolOfParent(); }

absl::Status Machine::FindGpu() {
  if (!has_queue()) return absl::OkStatus();
  if (gpu_ != nullptr) return gpu_->Check();
  if (device() == Device::kSim) {
    ASSIGN_OR_RETURN(gpu_, SimQueue::Create(rank()));
    return absl::OkStatus();
  }
  const int gpus = CountGpus();
  if (gpus > 0 && gpus < ranks()) {
    return MemoryError(
        "cannot_split",
        absl::StrCat("tensor parallel: ", ranks(),
                     " ranks need a GPU each, this process sees ", gpus));
  }
  ASSIGN_OR_RETURN(gpu_, OpenGpu(rank()));
  return absl::OkStatus();
}

absl::Status Machine::FindDevice() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return FindGpu();
}

absl::Status Machine::TakeMemory() {
  const std::lock_guard<std::mutex> lock(mutex_);
  RETURN_IF_ERROR(FindGpu());
  if (!simulated() || simulated_ != nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      simulated_,
      BoundedMemory::Create(options_.simulation->device_bytes,
                            options_.simulation->faults,
                            gpu_ != nullptr ? &gpu_->memory() : nullptr));
  return absl::OkStatus();
}

DeviceMemory& Machine::memory() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return simulated_ != nullptr ? static_cast<DeviceMemory&>(*simulated_)
         : gpu_ != nullptr     ? gpu_->memory()
                               : heap_;
}

absl::StatusOr<std::unique_ptr<Stream>> Machine::NewStream(
    DeviceMemory& scratch) {
  const std::lock_guard<std::mutex> lock(mutex_);
  RETURN_IF_ERROR(FindGpu());
  ForgetPoolOfParent();
  if (pool_ == nullptr) {
    pool_ = std::make_unique<ThreadPool>(threads());
    pool_process_ = getpid();
  }
  return Stream::Create({.device = options_.device,
                         .memory = &scratch,
                         .pool = pool_.get(),
                         .queue = gpu_.get()});
}

// A fork of the process has its memory but not its threads: the pool has no
// threads to end, and joining them would wait for ever.
void Machine::ForgetPoolOfParent() {
  if (pool_ == nullptr || pool_process_ == getpid()) return;
  [[maybe_unused]] ThreadPool* const nobodys = pool_.release();
}

int Machine::threads() const {
  const int all = options_.threads > 0 ? options_.threads : AllowedCpus();
  return std::max(1, all / ranks());
}

std::optional<LinkRate> Machine::link() const {
  if (!simulated()) return std::nullopt;
  return LinkRate{options_.simulation->link_bytes_per_s,
                  options_.simulation->latency_s};
}

std::shared_ptr<Placement> Machine::NewPlacement() const {
  return std::make_shared<Placement>(faults(), gpu());
}

absl::StatusOr<std::unique_ptr<Link>> Machine::NewLink(
    std::shared_ptr<Placement> placement) const {
  std::unique_ptr<Link> link;
  if (has_queue()) {
    std::unique_ptr<DeviceQueue> copies;
    if (device() == Device::kSim) {
      ASSIGN_OR_RETURN(copies, SimQueue::Create(rank()));
    } else {
      ASSIGN_OR_RETURN(copies, OpenGpu(rank()));
    }
    link = std::make_unique<GpuLink>(*gpu(), std::move(copies),
                                     std::move(placement), *options_.clock);
  } else {
    link = std::make_unique<HostLink>(std::move(placement));
  }
  if (!simulated()) return link;
  const Simulation& simulated = *options_.simulation;
  return std::make_unique<SimulatedLink>(simulated.link_bytes_per_s,
                                         simulated.latency_s, std::move(link),
                                         simulated.faults, *options_.clock);
}

DeviceQueue* Machine::gpu() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return gpu_.get();
}

int64_t Machine::Committed() const {
  return Promised() + (has_queue() ? 0 : memory().used());
}

// Memory that is free for this rank, less what sessions of this process may
// still take.
int64_t Machine::FreeMemory() const {
  return std::max<int64_t>(0, FreeHostMemory() - MemoryAccount::Unwritten()) /
         ranks();
}

// The memory that this rank may use: what is `free` for it and what it has
// `taken`, up to the limits that the user set.
int64_t Machine::Budget(int64_t free, int64_t taken) const {
  int64_t most = options_.device_memory_bytes > 0
                     ? options_.device_memory_bytes / ranks()
                     : std::numeric_limits<int64_t>::max();
  if (in_place() && options_.host_memory_bytes > 0) {
    most = std::min(most, options_.host_memory_bytes / ranks());
  }
  return free > most - taken ? most : free + taken;
}

int64_t Machine::MemoryBudget() const {
  return has_queue() ? FreeMemory() + Committed()
                     : Budget(FreeMemory(), Committed());
}

int64_t Machine::HostBudget() const {
  return host_is_bounded() ? options_.host_memory_bytes / ranks()
                           : std::numeric_limits<int64_t>::max();
}

int64_t Machine::DeviceBudget() const {
  if (simulated()) return options_.simulation->device_bytes;
  DeviceQueue* const device = gpu();
  if (device == nullptr) return MemoryBudget();
  return Budget(std::max<int64_t>(0, device->FreeBytes() - kGpuReserve),
                memory().used());
}

}  // namespace tiercel
