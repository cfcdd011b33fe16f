#include "offload/tier/host_region.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/error.h"

namespace tiercel {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

size_t WholePages(size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

absl::Status NoBytes(const char* what) {
  return MemoryError("out_of_memory",
                     absl::StrCat("host memory: cannot be ", what, ": ",
                                  std::strerror(errno)));
}

}  // namespace

absl::StatusOr<HostRegion> HostRegion::Reserve(size_t bytes) {
  HostRegion region;
  if (bytes == 0) return region;
  // What has room for a huge page begins at one, and gives the rest back.
  const size_t spare = bytes < kHugePage ? 0 : kHugePage;
  const size_t wanted = WholePages(bytes);
  void* const mapped = mmap(nullptr, wanted + spare, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    return MemoryError("out_of_memory",
                       absl::StrCat("host memory: need ", bytes,
                                    " bytes: ", std::strerror(errno)));
  }
  auto* const begin = static_cast<std::byte*>(mapped);
  const size_t over = reinterpret_cast<uintptr_t>(begin) % kHugePage;
  const size_t before = spare == 0 || over == 0 ? 0 : kHugePage - over;
  if (before > 0) (void)munmap(begin, before);
  if (before < spare) (void)munmap(begin + before + wanted, spare - before);
  region.data_ = begin + before;
  region.bytes_ = bytes;
  // Sweeps read long runs: larger pages spare address translation, and memory
  // comes in fewer steps. A refusal costs speed only.
  (void)madvise(region.data_, bytes, MADV_HUGEPAGE);
  return region;
}

absl::StatusOr<HostRegion> HostRegion::ReserveUnmapped(size_t bytes) {
  HostRegion region;
  region.fd_ = memfd_create("tiercel host tier", MFD_CLOEXEC);
  // A file of holes: memory is taken as it is written.
  if (region.fd_ < 0 || ftruncate(region.fd_, static_cast<off_t>(bytes)) != 0) {
    return MemoryError("out_of_memory",
                       absl::StrCat("host memory: need ", bytes,
                                    " bytes: ", std::strerror(errno)));
  }
  region.bytes_ = bytes;
  return region;
}

// A file in memory is refused bytes where there is no memory for them.
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
  if (data_ != nullptr) munmap(data_, bytes_);
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
