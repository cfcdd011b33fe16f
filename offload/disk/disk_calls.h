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
//
// Each is as the system call of its name: -1 with errno set. A call that a
// signal interrupts is made again, but for reads and writes, which say how far
// they came. Names are of files in the open folder `folder`.
class DiskCalls {
 public:
  virtual ~DiskCalls() = default;

  // A process that fork() makes has not what is open here: a lock belongs to
  // all who have its file open, and would outlive this process in that one.
  int Open(int folder, const char* name, int flags, mode_t mode);
  // EINTR is no error: the file is closed all the same.
  int Close(int file);
  // The file becomes so long, what is new of it 0, and the disk keeps room for
  // it where it can.
  int Allocate(int file, uint64_t bytes);
  int Sync(int file);
  // Syncs a folder; 0 where its file system syncs no folders.
  int SyncFolder(int folder);
  int Lock(int file, int operation);  // flock

  virtual ssize_t Read(int file, std::byte* to, size_t bytes, uint64_t offset);
  virtual ssize_t Write(int file, const std::byte* from, size_t bytes,
                        uint64_t offset);
  // These bytes will be read soon: the system may begin with them.
  virtual void Announce(int file, uint64_t offset, uint64_t bytes);
  // The system need not keep these bytes in memory, which were read.
  virtual void Forget(int file, uint64_t offset, uint64_t bytes);
  virtual int Rename(int folder, const char* from, const char* to);
  virtual int Remove(int folder, const char* name);

  // A queue of up to `depth` reads that are under way at once; null where the
  // system has none for us.
  virtual std::unique_ptr<ReadQueue> NewRing(int depth);

 protected:
  // The calls above, which a signal may interrupt.
  virtual int TryOpen(int folder, const char* name, int flags, mode_t mode);
  virtual int TryClose(int file);
  virtual int TryAllocate(int file, uint64_t bytes);
  virtual int TrySync(int file);
  virtual int TryLock(int file, int operation);
};

// The calls of this machine.
DiskCalls& SystemDisk();

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_DISK_DISK_CALLS_H_
