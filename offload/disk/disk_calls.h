#ifndef TIERCEL_OFFLOAD_DISK_DISK_CALLS_H_
#define TIERCEL_OFFLOAD_DISK_DISK_CALLS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "offload/disk/read_queue.h"

namespace tiercel {

// The system calls behind saved texts: the seam where tests make a disk full,
// slow or broken. Stateless and thread-safe.
class DiskCalls {
 public:
  virtual ~DiskCalls() = default;

  // Each as the system call of its name: -1 with errno set. Names are of files
  // in the open folder `folder`.
  virtual int Open(int folder, const char* name, int flags, mode_t mode);
  virtual ssize_t Read(int file, std::byte* to, size_t bytes, uint64_t offset);
  virtual ssize_t Write(int file, const std::byte* from, size_t bytes,
                        uint64_t offset);
  // The file becomes so long, what is new of it 0, and the disk keeps room for
  // it where it can.
  virtual int Allocate(int file, uint64_t bytes);
  virtual int Sync(int file);  // of a folder too
  // These bytes will be read soon: the system may begin with them.
  virtual void Announce(int file, uint64_t offset, uint64_t bytes);
  // The system need not keep these bytes in memory, which were read.
  virtual void Forget(int file, uint64_t offset, uint64_t bytes);
  virtual int Close(int file);
  virtual int Rename(int folder, const char* from, const char* to);
  virtual int Remove(int folder, const char* name);
  virtual int Lock(int file, int operation);  // flock

  // A queue of up to `depth` reads that are under way at once; null where the
  // system has none for us.
  virtual std::unique_ptr<ReadQueue> NewRing(int depth);
};

// The calls of this machine.
DiskCalls& SystemDisk();

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_DISK_DISK_CALLS_H_
