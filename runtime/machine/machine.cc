#include "runtime/machine/machine.h"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/blas_lt.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/system/resource_limits.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "offload/move/gpu_link.h"

namespace tiercel {

Machine::~Machine() { ForgetPoolOfParent(); }

absl::Status Machine::FindLocked() {
  const int gpus = device_->kind() == DeviceKind::kCuda ? CountGpus() : 0;
  if (device_->queue() == nullptr && gpus > 0 && gpus < ranks()) {
    return UsageError(
        "cannot_split",
        absl::StrCat("tensor parallel: ", ranks(),
                     " ranks need a GPU each, this process sees ", gpus));
  }
  return device_->Find();
}

absl::Status Machine::FindDevice() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return FindLocked();
}

absl::Status Machine::TakeMemory() {
  const std::lock_guard<std::mutex> lock(mutex_);
  RETURN_IF_ERROR(FindLocked());
  return device_->TakeMemory();
}

DeviceMemory& Machine::memory() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return device_->memory();
}

DeviceQueue* Machine::queue() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return device_->queue();
}

absl::StatusOr<std::unique_ptr<Stream>> Machine::NewStream(
    DeviceMemory& scratch) {
  const std::lock_guard<std::mutex> lock(mutex_);
  RETURN_IF_ERROR(FindLocked());
  return Stream::Create({.device = options_.device,
                         .memory = &scratch,
                         .pool = &Pool(),
                         .queue = device_->queue(),
                         .fast_prompts = FastPrompts()});
}

absl::StatusOr<std::unique_ptr<Stream>> Machine::NewHostStream() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return Stream::Create({.pool = &Pool()});
}

ThreadPool& Machine::Pool() {
  ForgetPoolOfParent();
  if (pool_ == nullptr) {
    pool_ = std::make_unique<ThreadPool>(threads());
    pool_->Use(most_in_use_);
    pool_process_ = getpid();
  }
  return *pool_;
}

std::string Machine::PromptArithmetic() const {
  const bool by_library = device_->traits().runs_kernels() && BlasLt::IsAsked();
  if (!FastPrompts() && !by_library) return "exact";
  const absl::StatusOr<GpuFacts> facts = CudaDriver::FindGpu(rank_);
  return absl::StrCat(FastPrompts() ? "fast, " : "",
                      by_library ? "cublaslt, " : "",
                      facts.ok() ? facts->capability : 0);
}

// A fork of the process has its memory but not its threads: the pool has no
// threads to end, and joining them would wait for ever.
void Machine::ForgetPoolOfParent() {
  if (pool_ == nullptr || pool_process_ == getpid()) return;
  [[maybe_unused]] ThreadPool* const nobodys = pool_.release();
}

int Machine::AllThreads() const {
  return options_.threads > 0 ? options_.threads : AllowedCpus();
}

int Machine::threads() const { return std::max(1, AllThreads() / ranks()); }

int Machine::threads_in_use() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::min(threads(), most_in_use_);
}

absl::Status Machine::UseThreads(int threads) {
  if (threads < 1 || threads > AllThreads()) {
    return UsageError(
        "invalid_threads",
        absl::StrCat("threads in use: got ", threads, ", need 1 to ",
                     AllThreads(), ", which the model was opened with"));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  most_in_use_ = std::max(1, threads / ranks());
  ForgetPoolOfParent();
  if (pool_ != nullptr) pool_->Use(most_in_use_);
  return absl::OkStatus();
}

std::shared_ptr<Placement> Machine::NewPlacement() const {
  return std::make_shared<Placement>(queue());
}

absl::StatusOr<std::unique_ptr<Link>> Machine::NewLink(
    std::shared_ptr<Placement> placement) const {
  std::unique_ptr<Link> link;
  if (device_->apart()) {
    ASSIGN_OR_RETURN(std::unique_ptr<DeviceQueue> copies, device_->NewQueue());
    link = std::make_unique<GpuLink>(*queue(), std::move(copies),
                                     std::move(placement), *options_.clock);
  } else {
    link = std::make_unique<HostLink>(std::move(placement));
  }
  const std::optional<LinkRate> rate = device_->link();
  if (!rate.has_value()) return link;
  return std::make_unique<SimulatedLink>(rate->bytes_per_s, rate->latency_s,
                                         std::move(link), *options_.clock,
                                         wire_);
}

int64_t Machine::Committed() const {
  return PromisedBytesOn(*this) + (device_->apart() ? 0 : memory().used());
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
  if (device_->in_place() && options_.host_memory_bytes > 0) {
    most = std::min(most, options_.host_memory_bytes / ranks());
  }
  return free > most - taken ? most : free + taken;
}

int64_t Machine::MemoryBudget() const {
  return device_->apart() ? FreeMemory() + Committed()
                          : Budget(FreeMemory(), Committed());
}

std::optional<int64_t> Machine::HostBudget() const {
  if (options_.host_memory_bytes <= 0) return std::nullopt;
  return options_.host_memory_bytes / ranks();
}

int64_t Machine::DeviceBudget() const {
  std::optional<int64_t> bytes;
  int64_t used = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    bytes = device_->Bytes();
    used = device_->memory().used();
  }
  if (!bytes.has_value()) return MemoryBudget();
  // The limits of a simulated device are the user's own.
  return device_->limited() ? *bytes : Budget(*bytes - used, used);
}

int64_t TakenBytesOn(const Machine& machine, int64_t bytes) {
  // A simulated device has no memory before TakeMemory.
  return machine.device().limited() ? AlignedBytes(bytes)
                                    : machine.memory().TakenBytes(bytes);
}

}  // namespace tiercel
