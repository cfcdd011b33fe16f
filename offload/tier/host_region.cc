#include "offload/tier/host_region.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/system/system_pages.h"
#include "lib/status/error.h"

namespace tiercel {
absl::StatusOr<HostRegion> HostRegion::Reserve(size_t bytes) {
  HostRegion region;
  if (bytes == 0) return region;
  region.data_ = MapPages(bytes, Mapping::kHoped);
  if (region.data_ == nullptr) {
    return MemoryError("out_of_memory",
                       absl::StrCat("host memory: need ", bytes,
                                    " bytes: ", std::strerror(errno)));
  }
  region.bytes_ = bytes;
  return region;
}

void HostRegion::Discard(int64_t offset, int64_t bytes) const {
  if (bytes > 0) DiscardPages(data_ + offset, static_cast<size_t>(bytes));
}

HostRegion::~HostRegion() {
  if (data_ != nullptr) UnmapPages(data_, bytes_);
}

HostRegion::HostRegion(HostRegion&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

HostRegion& HostRegion::operator=(HostRegion&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace tiercel
