#ifndef TIERCEL_KERNELS_KV_TESTING_H_
#define TIERCEL_KERNELS_KV_TESTING_H_

// Helpers for tests of ops only.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/kv/kv_row.h"
#include "kernels/system/testing.h"

namespace tiercel {

// The types that K and V may have in rows of `head_dim` elements.
inline std::vector<DType> KvTypes(int head_dim) {
  std::vector<DType> types;
  for (DType type :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0}) {
    if (IsKvType(type, head_dim)) types.push_back(type);
  }
  return types;
}

// Copies of pages of `bytes` each (some may be null) in memory that the ops of
// a stream can read.
class OnDevicePages {
 public:
  OnDevicePages(Stream& stream, const std::vector<DevicePtr<std::byte>>& pages,
                int64_t bytes)
      : pages_(pages) {
    if (stream.on_host()) return;
    std::vector<std::byte> all;
    for (const DevicePtr<std::byte> page : pages) {
      const std::byte* const from = HostAddress(page);
      if (from != nullptr) all.insert(all.end(), from, from + bytes);
    }
    bytes_ = std::make_unique<OnDevice<std::byte>>(stream, std::move(all));
    DevicePtr<std::byte> next = bytes_->data();
    for (DevicePtr<std::byte>& page : pages_) {
      if (page == nullptr) continue;
      page = next;
      next += bytes;
    }
  }

  const DevicePtr<std::byte>* data() const { return pages_.data(); }
  // Clears the list, as its owner may once an op has returned.
  void Forget() { std::fill(pages_.begin(), pages_.end(), nullptr); }

 private:
  std::unique_ptr<OnDevice<std::byte>>
      bytes_;  // null: the device computes in place
  std::vector<DevicePtr<std::byte>> pages_;
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_TESTING_H_
