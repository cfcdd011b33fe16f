#include "offload/disk/disk_calls.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "kernels/system/faults.h"
#include "offload/disk/process_files.h"

namespace tiercel {

namespace {

// Repeats a call that a signal interrupts, up to a limit.
template <typename Call>
int Uninterrupted(Call call) {
  constexpr int kMostTries = 1000;
  int result = call();
  for (int tries = 1; result < 0 && errno == EINTR && tries < kMostTries;
       ++tries) {
    result = call();
  }
  return result;
}

}  // namespace

int DiskCalls::Open(int folder, const char* name, int flags, mode_t mode) {
  return OpenForThisProcess([&] {
    return Uninterrupted([&] { return TryOpen(folder, name, flags, mode); });
  });
}

int DiskCalls::Close(int file) {
  return CloseForThisProcess(file, [&] {
    const int closed = TryClose(file);
    return closed < 0 && errno == EINTR ? 0 : closed;
  });
}

int DiskCalls::Allocate(int file, uint64_t bytes) {
  return Uninterrupted([&] { return TryAllocate(file, bytes); });
}

int DiskCalls::Sync(int file) {
  return Uninterrupted([&] { return TrySync(file); });
}

int DiskCalls::SyncFolder(int folder) {
  const int synced = Sync(folder);
  const bool has_none = synced < 0 && (errno == EINVAL || errno == ENOTSUP ||
                                       errno == ENOSYS || errno == EROFS);
  return has_none ? 0 : synced;
}

int DiskCalls::Lock(int file, int operation) {
  return Uninterrupted([&] { return TryLock(file, operation); });
}

ssize_t DiskCalls::Read(int file, std::byte* to, size_t bytes,
                        uint64_t offset) {
  if (Fails("read", bytes)) return -1;
  return pread(file, to, bytes, static_cast<off_t>(offset));
}

ssize_t DiskCalls::Write(int file, const std::byte* from, size_t bytes,
                         uint64_t offset) {
  if (Fails("write", bytes)) return -1;
  return pwrite(file, from, bytes, static_cast<off_t>(offset));
}

void DiskCalls::Announce(int file, uint64_t offset, uint64_t bytes) {
  (void)posix_fadvise(file, static_cast<off_t>(offset),
                      static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
}

void DiskCalls::Forget(int file, uint64_t offset, uint64_t bytes) {
  (void)posix_fadvise(file, static_cast<off_t>(offset),
                      static_cast<off_t>(bytes), POSIX_FADV_DONTNEED);
}

int DiskCalls::Rename(int folder, const char* from, const char* to) {
  if (Fails("rename")) return -1;
  return renameat(folder, from, folder, to);
}

int DiskCalls::Remove(int folder, const char* name) {
  if (Fails("remove")) return -1;
  return unlinkat(folder, name, /*flags=*/0);
}

std::unique_ptr<ReadQueue> DiskCalls::NewRing(int depth) {
  return NewRingQueue(depth);
}

int DiskCalls::TryOpen(int folder, const char* name, int flags, mode_t mode) {
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  if (Fails(writes ? "create" : "open")) return -1;
  return openat(folder, name, flags, mode);
}

int DiskCalls::TryClose(int file) {
  const int closed = close(file);  // even if a fault has it fail
  return Fails("close") ? -1 : closed;
}

int DiskCalls::TryAllocate(int file, uint64_t bytes) {
  if (Fails("allocate", bytes)) return -1;
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0) return -1;
  // The file is allocated in small parts, so that it gets done even if a signal
  // comes every few milliseconds: an interrupted call has done nothing.
  constexpr uint64_t kAtOnce = uint64_t{16} << 20;
  for (uint64_t done = 0; done < bytes; done += kAtOnce) {
    const uint64_t part = std::min(kAtOnce, bytes - done);
    // This is not posix_fallocate, which writes the whole file where the file
    // system cannot reserve room.
    if (Uninterrupted([&] {
          if (Fails("reserve", part)) return -1;
          return fallocate(file, /*mode=*/0, static_cast<off_t>(done),
                           static_cast<off_t>(part));
        }) != 0) {
      const bool goes_without =
          errno == EOPNOTSUPP || errno == ENOSYS || errno == EINTR;
      return goes_without ? 0 : -1;
    }
  }
  return 0;
}

int DiskCalls::TrySync(int file) {
  return Fails("sync") ? -1 : fdatasync(file);
}

int DiskCalls::TryLock(int file, int operation) {
  return Fails("lock") ? -1 : flock(file, operation);
}

bool DiskCalls::Fails(std::string_view call, size_t bytes) const {
  const int error = FaultAt({.of = Callee::kDisk,
                             .call = call,
                             .bytes = static_cast<int64_t>(bytes),
                             .object = this});
  if (error != 0) errno = error;
  return error != 0;
}

DiskCalls& SystemDisk() {
  static DiskCalls calls;
  return calls;
}

}  // namespace tiercel
