#include "offload/tier/host_region.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/machine/system_pages.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

absl::Status NoBytes(const char* what) {
  return MemoryError("out_of_memory",
                     absl::StrCat("host memory: cannot be ", what, ": ",
                                  std::strerror(errno)));
}

}  // namespace

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

absl::StatusOr<HostRegion> HostRegion::ReserveUnmapped(size_t bytes) {
  HostRegion region;
  region.fd_ = memfd_create("tiercel host tier", MFD_CLOEXEC);
  // The file begins as one hole: it takes memory as it is written.
  if (region.fd_ < 0 || ftruncate(region.fd_, static_cast<off_t>(bytes)) != 0) {
    return MemoryError("out_of_memory",
                       absl::StrCat("host memory: need ", bytes,
                                    " bytes: ", std::strerror(errno)));
  }
  region.bytes_ = bytes;
  return region;
}

// A write to a file in memory fails if there is no memory for the bytes.
absl::Status HostRegion::Write(int64_t offset, const std::byte* from,
                               size_t bytes) const {
  if (data_ != nullptr) std::memcpy(data_ + offset, from, bytes);
  size_t done = data_ != nullptr ? bytes : 0;
  while (done < bytes) {
    const ssize_t put = pwrite(fd_, from + done, bytes - done,
                               offset + static_cast<off_t>(done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return NoBytes("written");
    done += static_cast<size_t>(put);
  }
  return absl::OkStatus();
}

absl::Status HostRegion::Read(int64_t offset, std::byte* to,
                              size_t bytes) const {
  if (data_ != nullptr) std::memcpy(to, data_ + offset, bytes);
  size_t done = data_ != nullptr ? bytes : 0;
  while (done < bytes) {
    const ssize_t got =
        pread(fd_, to + done, bytes - done, offset + static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return NoBytes("read");
    done += static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

HostRegion::~HostRegion() {
  if (data_ != nullptr) UnmapPages(data_, bytes_);
  if (fd_ >= 0) close(fd_);
}

HostRegion::HostRegion(HostRegion&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      fd_(std::exchange(other.fd_, -1)),
      bytes_(std::exchange(other.bytes_, 0)) {}

HostRegion& HostRegion::operator=(HostRegion&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(fd_, other.fd_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace tiercel
