#include "offload/disk/file_writer.h"

#include <sys/types.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "offload/disk/page_reader.h"

namespace tiercel {
namespace {

constexpr int kMostIdleWrites = 1000;  // writes without a byte of progress
constexpr uint64_t kBytesToSync = uint64_t{8} << 20;

}  // namespace

absl::Status FileWriter::Write(const std::byte* from, size_t bytes,
                               uint64_t offset) {
  size_t done = 0;
  int tries = 0;
  while (done < bytes) {
    const ssize_t put =
        disk_.Write(file_, from + done, bytes - done, offset + done);
    const int error = put < 0 ? errno : 0;
    if (put > 0) {
      done += static_cast<size_t>(put);
      tries = 0;
    } else if ((error != EINTR && error != EAGAIN) ||
               ++tries == kMostIdleWrites) {
      return DiskError(name_, absl::StrCat("write at byte ", offset + done),
                       error != 0 ? error : ENOSPC);
    }
  }
  unsynced_ += bytes;
  return unsynced_ < kBytesToSync ? absl::OkStatus() : Sync();
}

absl::Status FileWriter::Sync() {
  unsynced_ = 0;
  if (disk_.Sync(file_) == 0) return absl::OkStatus();
  return DiskError(name_, "bring it to the disk", errno);
}

}  // namespace tiercel
