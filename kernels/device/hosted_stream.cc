#include "kernels/device/hosted_stream.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/error.h"
#include "kernels/machine/cuda_stream.h"

namespace tiercel {
namespace {

constexpr std::byte kUntouched{0xff};  // NaN, in every type
constexpr size_t kPage = 4096;

// A mapping for each block, and the block at its end.
class HostedMemory final : public DeviceMemory {
 public:
  absl::StatusOr<std::byte*> Allocate(size_t bytes,
                                      std::string_view what) override {
    const size_t room = Room(bytes);
    void* const mapped =
        room < bytes ? MAP_FAILED
                     : mmap(nullptr, room + kPage, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
      return MemoryError(
          "out_of_memory",
          absl::StrCat(std::string(what), ": need ", bytes, " bytes"));
    }
    auto* const start = static_cast<std::byte*>(mapped);
    mprotect(start + room, kPage, PROT_NONE);
    std::memset(start, static_cast<int>(kUntouched), room);
    const auto aligned = AlignedBytes(static_cast<int64_t>(bytes));
    Count(aligned);
    std::byte* const data = start + room - aligned;
    const std::lock_guard lock(mutex_);
    blocks_[data] = bytes;
    return data;
  }

  void Free(std::byte* data, size_t bytes) override {
    const auto aligned = AlignedBytes(static_cast<int64_t>(bytes));
    Count(-aligned);
    const std::lock_guard lock(mutex_);
    blocks_.erase(data);
    munmap(data + aligned - Room(bytes), Room(bytes) + kPage);
  }

  // device_failed where something was written behind a block.
  absl::Status Check() {
    const std::lock_guard lock(mutex_);
    for (const auto& [data, bytes] : blocks_) {
      const auto aligned = AlignedBytes(static_cast<int64_t>(bytes));
      for (std::byte* p = data + bytes; p < data + aligned; ++p) {
        if (*p == kUntouched) continue;
        return DeviceError("device_failed",
                           absl::StrCat("byte ", p - data, " of an array of ",
                                        bytes, " was written"));
      }
    }
    return absl::OkStatus();
  }

 private:
  static size_t Room(size_t bytes) {
    return (bytes + kPage - 1) / kPage * kPage;
  }

  std::mutex mutex_;
  std::map<std::byte*, size_t> blocks_;
};

HostedMemory& Memory() {
  static HostedMemory* const memory = new HostedMemory;
  return *memory;
}

class HostedStream final : public CudaStream {
 public:
  explicit HostedStream(Order order) : handle_{HostExecutor(order)} {}

  CUstream_st* handle() override { return &handle_; }
  DeviceMemory& memory() override { return Memory(); }
  absl::Status Copy(void* to, const void* from, size_t bytes) override {
    std::memcpy(to, from, bytes);
    return absl::OkStatus();
  }
  absl::Status Synchronize() override { return Memory().Check(); }

 private:
  CUstream_st handle_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CudaStream>> CudaStream::Create() {
  return std::make_unique<HostedStream>(Order::kAscending);
}

absl::Status CudaStatus(std::string_view who, int error) {
  if (error == 0) return absl::OkStatus();
  return DeviceError("device_failed", absl::StrCat(std::string(who), ": ",
                                                   HostExecutor::TakeFault()));
}

std::unique_ptr<Stream> MakeHostedStream(Order order) {
  return *Stream::Over(std::make_unique<HostedStream>(order));
}

}  // namespace tiercel
