#include "runtime/machine/machine.h"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "kernels/machine/allowance.h"

namespace tiercel {

Machine::~Machine() { ForgetPoolOfParent(); }

absl::Status Machine::TakeMemory() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (device() == Device::kCuda && gpu_ == nullptr) {
    absl::StatusOr<std::unique_ptr<CudaStream>> gpu = CudaStream::Create();
    if (!gpu.ok()) return gpu.status();
    gpu_ = *std::move(gpu);
  }
  if (!simulated() || arena_ != nullptr) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<DeviceArena>> created = DeviceArena::Create(
      options_.simulation->device_bytes, options_.simulation->faults);
  if (!created.ok()) return created.status();
  arena_ = *std::move(created);
  return absl::OkStatus();
}

DeviceMemory& Machine::memory() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return arena_ != nullptr ? static_cast<DeviceMemory&>(*arena_)
         : gpu_ != nullptr ? gpu_->memory()
                           : heap_;
}

absl::StatusOr<std::unique_ptr<Stream>> Machine::NewStream(
    DeviceMemory& scratch) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ForgetPoolOfParent();
  if (pool_ == nullptr) {
    pool_ = std::make_unique<ThreadPool>(threads());
    pool_process_ = getpid();
  }
  return Stream::Create(
      {.device = options_.device, .memory = &scratch, .pool = pool_.get()});
}

// A fork of the process has its memory but not its threads: there is nobody to
// end, and ending them would wait for ever.
void Machine::ForgetPoolOfParent() {
  if (pool_ == nullptr || pool_process_ == getpid()) return;
  [[maybe_unused]] ThreadPool* const nobodys = pool_.release();
}

int Machine::threads() const {
  return options_.threads > 0 ? options_.threads : AllowedCpus();
}

std::optional<LinkRate> Machine::link() const {
  if (!simulated()) return std::nullopt;
  return LinkRate{options_.simulation->link_bytes_per_s,
                  options_.simulation->latency_s};
}

std::shared_ptr<Placement> Machine::NewPlacement() const {
  return std::make_shared<Placement>(options_.simulation->faults);
}

std::unique_ptr<Link> Machine::NewLink(
    std::shared_ptr<Placement> placement) const {
  const Simulation& played = *options_.simulation;
  return std::make_unique<SimulatedLink>(played.link_bytes_per_s,
                                         played.latency_s, std::move(placement),
                                         played.faults, *options_.clock);
}

CudaStream* Machine::gpu() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return gpu_.get();
}

int64_t Machine::MemoryBudget() const {
  const int64_t most = options_.device_memory_bytes > 0
                           ? options_.device_memory_bytes
                           : std::numeric_limits<int64_t>::max();
  CudaStream* const all = gpu();
  const int64_t free = all != nullptr ? all->FreeBytes() : FreeHostMemory();
  const int64_t taken = memory().used();
  return free > most - taken ? most : free + taken;
}

int64_t Machine::DeviceBudget() const {
  if (simulated()) return options_.simulation->device_bytes;
  return MemoryBudget();
}

}  // namespace tiercel
