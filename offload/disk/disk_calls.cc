#include "offload/disk/disk_calls.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace tiercel {

int DiskCalls::Open(int folder, const char* name, int flags, mode_t mode) {
  return openat(folder, name, flags, mode);
}

ssize_t DiskCalls::Read(int file, std::byte* to, size_t bytes,
                        uint64_t offset) {
  return pread(file, to, bytes, static_cast<off_t>(offset));
}

ssize_t DiskCalls::Write(int file, const std::byte* from, size_t bytes,
                         uint64_t offset) {
  return pwrite(file, from, bytes, static_cast<off_t>(offset));
}

int DiskCalls::Allocate(int file, uint64_t bytes) {
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0) return -1;
  if (bytes == 0) return 0;
  // posix_fallocate would write the whole file where fallocate cannot.
  if (fallocate(file, /*mode=*/0, 0, static_cast<off_t>(bytes)) == 0) return 0;
  return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : -1;
}

int DiskCalls::Sync(int file) { return fdatasync(file); }

void DiskCalls::Announce(int file, uint64_t offset, uint64_t bytes) {
  (void)posix_fadvise(file, static_cast<off_t>(offset),
                      static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
}

void DiskCalls::Forget(int file, uint64_t offset, uint64_t bytes) {
  (void)posix_fadvise(file, static_cast<off_t>(offset),
                      static_cast<off_t>(bytes), POSIX_FADV_DONTNEED);
}

int DiskCalls::Close(int file) { return close(file); }

int DiskCalls::Rename(int folder, const char* from, const char* to) {
  return renameat(folder, from, folder, to);
}

int DiskCalls::Remove(int folder, const char* name) {
  return unlinkat(folder, name, /*flags=*/0);
}

int DiskCalls::Lock(int file, int operation) { return flock(file, operation); }

std::unique_ptr<ReadQueue> DiskCalls::NewRing(int depth) {
  return NewRingQueue(depth);
}

DiskCalls& SystemDisk() {
  static DiskCalls calls;
  return calls;
}

}  // namespace tiercel
