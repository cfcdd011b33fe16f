#ifndef TIERCEL_OFFLOAD_TIER_HOST_REGION_H_
#define TIERCEL_OFFLOAD_TIER_HOST_REGION_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/status/statusor.h"

namespace tiercel {

// A run of zeroed host memory that is taken from the system page by page as it
// is first written: reserving a whole context costs address space only.
// Returned to the system when destroyed.
class HostRegion {
 public:
  // Errors: out_of_memory with the bytes asked for.
  static absl::StatusOr<HostRegion> Reserve(size_t bytes);

  HostRegion() = default;
  ~HostRegion();
  HostRegion(HostRegion&& other) noexcept;
  HostRegion& operator=(HostRegion&& other) noexcept;

  // Copies bytes into and out of the region. A region without bytes has no
  // address that memcpy could take.
  void Write(int64_t offset, const std::byte* from, size_t bytes) const {
    if (bytes > 0) std::memcpy(data_ + offset, from, bytes);
  }
  void Read(int64_t offset, std::byte* to, size_t bytes) const {
    if (bytes > 0) std::memcpy(to, data_ + offset, bytes);
  }

  // Gives the system back what it can of these bytes, whose contents are
  // undefined afterwards. It keeps memory that is locked.
  void Discard(int64_t offset, int64_t bytes) const;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_TIER_HOST_REGION_H_
