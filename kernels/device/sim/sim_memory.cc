#include "kernels/device/sim/sim_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/cuda_error.h"
#include "kernels/device/sim/sim_queue.h"
#include "kernels/system/resource_limits.h"
#include "lib/status/error.h"

namespace tiercel {

SimMemory::SimMemory(int device)
    : device_(device),
      blocks_(device < kFirstDense ? SimBlocks::Guarded()
                                   : SimBlocks::Dense()) {}

SimMemory& SimMemory::Get(int device) {
  static const auto* const all = [] {
    auto* const made = new std::vector<SimMemory*>;
    for (int i = 0; i < kMostDevices; ++i) made->push_back(new SimMemory(i));
    return made;
  }();
  return *(*all)[static_cast<size_t>(device)];
}

SimMemory* SimMemory::Holder(const void* address) {
  const std::lock_guard lock(Mutex());
  for (int device = 0; device < kMostDevices; ++device) {
    SimMemory& memory = Get(device);
    if (memory.blocks_->ranges().Hold(address)) return &memory;
  }
  return nullptr;
}

std::mutex& SimMemory::Mutex() {
  static std::mutex* const mutex = new std::mutex;
  return *mutex;
}

int64_t SimMemory::TakenBytes(int64_t bytes) const {
  return device_ < kFirstDense ? GpuMemory::TakenBytes(bytes)
                               : AlignedBytes(bytes);
}

int64_t SimMemory::FreeBytes() {
  if (SimErrorOf("free", device_) != 0) return 0;
  if (size_ == 0) return FreeHostMemory();
  return std::max<int64_t>(0, size_ - used());
}

int SimMemory::Take(size_t bytes, std::byte** data) {
  if (const int error = SimErrorOf("allocate", device_, bytes); error != 0) {
    return error;
  }
  if (size_ > 0 && used() + TakenBytes(static_cast<int64_t>(bytes)) > size_) {
    return kCudaOutOfMemory;
  }
  const std::lock_guard lock(Mutex());
  *data = blocks_->Take(bytes);
  return *data != nullptr ? kCudaSuccess : kCudaOutOfMemory;
}

void SimMemory::Free(DevicePtr<std::byte> data, size_t bytes) {
  RunSimQueues(device_);
  Count(-TakenBytes(static_cast<int64_t>(bytes)));
  const std::lock_guard lock(Mutex());
  blocks_->Free(data.raw());
}

absl::Status SimMemory::Copy(DevicePtr<void> to, DevicePtr<const void> from,
                             size_t bytes) {
  RunSimQueues(device_);
  const int error = SimErrorOf("copy", device_, bytes);
  if (error == 0) {
    WhileOpen([&] { std::memcpy(to.raw(), from.raw(), bytes); });
  }
  return CudaStatus("copy", error);
}

absl::Status SimMemory::Pin(std::byte* host, size_t bytes) {
  const std::lock_guard lock(Mutex());
  if (pinned_.Meet(host, bytes)) {
    return DeviceError("device_failed", "pin: some of it is pinned already");
  }
  pinned_.Add(host, bytes);
  return absl::OkStatus();
}

void SimMemory::Unpin(std::byte* host) {
  const std::lock_guard lock(Mutex());
  pinned_.Remove(host);
}

int64_t SimMemory::PinnedBytes() {
  const std::lock_guard lock(Mutex());
  int64_t all = 0;
  for (const auto& [start, bytes] : pinned_) all += static_cast<int64_t>(bytes);
  return all;
}

bool SimMemory::IsPinned(const void* host) {
  const std::lock_guard lock(Mutex());
  return pinned_.Hold(host);
}

void SimMemory::WhileOpen(absl::FunctionRef<void()> work) {
#if defined(__SANITIZE_THREAD__)
  return work();  // a lock would hide races between queues
#else
  const std::lock_guard lock(Mutex());
  blocks_->Open();
  work();
  blocks_->Close();
#endif
}

absl::Status SimMemory::Check() {
  absl::Status status;
#if defined(__SANITIZE_THREAD__)
  return status;  // blocks are not filled, and no lock guards their list
#endif
  WhileOpen([&] {
    for (const auto& [data, bytes] : blocks_->ranges()) {
      const std::byte* const written = blocks_->WrittenAfter(data);
      if (written == nullptr) continue;
      status.Update(
          DeviceError("device_failed",
                      absl::StrCat("byte ", written - data, " of an array of ",
                                   bytes, " was written")));
    }
  });
  return status;
}

}  // namespace tiercel
