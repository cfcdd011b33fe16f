#ifndef TIERCEL_KERNELS_DEVICE_DEVICE_MEMORY_H_
#define TIERCEL_KERNELS_DEVICE_DEVICE_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/base/checked.h"
#include "kernels/device/device_ptr.h"
#include "lib/status/status_macros.h"

namespace tiercel {

// Memory that ops compute on. Every buffer of a model and of its sessions that
// a device would hold is taken here, so that a budget is one number. Blocks are
// 64-byte aligned, and their contents are undefined at first. Thread-safe.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  // `what` names the block in an error. Errors: out_of_memory, with the bytes
  // needed and free.
  virtual absl::StatusOr<DevicePtr<std::byte>> Allocate(
      size_t bytes, std::string_view what) = 0;
  virtual void Free(DevicePtr<std::byte> data, size_t bytes) = 0;
  // Copies from one block to another after all queued work, and returns when
  // the copy is done. Errors: device_failed.
  virtual absl::Status Copy(DevicePtr<void> to, DevicePtr<const void> from,
                            size_t bytes) {
    std::memcpy(to.raw(), from.raw(), bytes);
    return absl::OkStatus();
  }

  // The bytes of the blocks that are taken, as TakenBytes counts them.
  int64_t used() const { return used_; }
  // The share of a budget that one block of `bytes` takes.
  virtual int64_t TakenBytes(int64_t bytes) const;

 protected:
  // Counts a block that is given (bytes > 0) or came back (bytes < 0).
  void Count(int64_t bytes) { used_ += bytes; }

 private:
  std::atomic<int64_t> used_{0};
};

// The machine's own memory, without a budget.
class HeapMemory final : public DeviceMemory {
 public:
  absl::StatusOr<DevicePtr<std::byte>> Allocate(size_t bytes,
                                                std::string_view what) override;
  void Free(DevicePtr<std::byte> data, size_t bytes) override;
};

// The machine's memory, for callers that do not count what they use.
DeviceMemory& SystemMemory();

// AlignedBytes is the share of a budget that one block of `bytes` takes, if it
// is not a GPU's.
inline constexpr size_t kDeviceAlignment = 64;
inline constexpr int64_t AlignedBytes(int64_t bytes) {
  constexpr auto kAlignment = static_cast<int64_t>(kDeviceAlignment);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

inline int64_t DeviceMemory::TakenBytes(int64_t bytes) const {
  return AlignedBytes(bytes);
}

// An array of a trivial type in such memory. An empty array takes no memory.
template <typename T>
class DeviceArray {
 public:
  // Errors: those of Allocate.
  static absl::StatusOr<DeviceArray> Create(DeviceMemory& memory, int64_t size,
                                            std::string_view what) {
    DeviceArray array;
    if (size == 0) return array;
    // If the size overflows, SIZE_MAX makes Allocate fail.
    const size_t bytes =
        CheckedMul(static_cast<uint64_t>(size), sizeof(T)).value_or(SIZE_MAX);
    ASSIGN_OR_RETURN(const DevicePtr<std::byte> data,
                     memory.Allocate(bytes, what));
    array.memory_ = &memory;
    array.data_ = data.As<T>();
    array.size_ = static_cast<size_t>(size);
    return array;
  }

  DeviceArray() = default;
  ~DeviceArray() {
    if (data_ == nullptr) return;
    memory_->Free(data_.template As<std::byte>(), size_ * sizeof(T));
  }
  DeviceArray(DeviceArray&& other) noexcept
      : memory_(other.memory_),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  // A copy of the array; both are in `memory`. Errors: those of Allocate and
  // Copy.
  absl::StatusOr<DeviceArray> Copy(DeviceMemory& memory,
                                   std::string_view what) const {
    absl::StatusOr<DeviceArray> copy =
        Create(memory, static_cast<int64_t>(size_), what);
    if (!copy.ok() || empty()) return copy;
    RETURN_IF_ERROR(memory.Copy(copy->data_, data_, size_ * sizeof(T)));
    return copy;
  }

  DevicePtr<T> data() { return data_; }
  DevicePtr<const T> data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // The bytes that the array takes of a budget.
  int64_t bytes() const {
    return AlignedBytes(static_cast<int64_t>(size_ * sizeof(T)));
  }

 private:
  DeviceMemory* memory_ = nullptr;
  DevicePtr<T> data_;
  size_t size_ = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_DEVICE_MEMORY_H_
