#ifndef TIERCEL_MODELS_DECODER_REUSED_MEMORY_H_
#define TIERCEL_MODELS_DECODER_REUSED_MEMORY_H_

#include <cstddef>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "kernels/device/device_memory.h"

namespace tiercel {

// System memory that keeps one block when it is given back. Matrices on their
// way to a GPU follow each other, many of the same size, and getting new memory
// takes longer than filling it.
class ReusedMemory final : public DeviceMemory {
 public:
  ~ReusedMemory() override {
    if (kept_ != nullptr) SystemMemory().Free(kept_, bytes_);
  }

  absl::StatusOr<DevicePtr<std::byte>> Allocate(
      size_t bytes, std::string_view what) override {
    if (kept_ != nullptr && bytes == bytes_) {
      return std::exchange(kept_, nullptr);
    }
    return SystemMemory().Allocate(bytes, what);
  }
  void Free(DevicePtr<std::byte> data, size_t bytes) override {
    if (kept_ != nullptr) SystemMemory().Free(kept_, bytes_);
    kept_ = data;
    bytes_ = bytes;
  }

 private:
  DevicePtr<std::byte> kept_;  // null: none
  size_t bytes_ = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_MODELS_DECODER_REUSED_MEMORY_H_
