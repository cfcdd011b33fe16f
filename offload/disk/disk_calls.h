#ifndef TIERCEL_OFFLOAD_DISK_DISK_CALLS_H_
#define TIERCEL_OFFLOAD_DISK_DISK_CALLS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "offload/disk/read_queue.h"

namespace tiercel {

// The system calls behind files of KV. Each may fail by a fault
// (Callee::kDisk); a test's double may be slow. Stateless and thread-safe.
//
// Each function is like the system call of its name: on an error it returns -1
// with errno set. A call that a signal interrupts is repeated, except reads and
// writes, which return how far they came. Names are those of files in the open
// folder `folder`.
class DiskCalls {
 public:
  virtual ~DiskCalls() = default;

  // The file is closed in child processes that fork() makes: a lock belongs to
  // all processes that have its file open, and would outlive this one in a
  // child.
  int Open(int folder, const char* name, int flags, mode_t mode);
  // EINTR is no error: the file is closed even so.
  int Close(int file);
  // Makes the file `bytes` long, with 0 in the new part, and reserves room for
  // it if the file system can.
  int Allocate(int file, uint64_t bytes);
  int Sync(int file);
  // Syncs a folder. Returns 0 if its file system does not sync folders.
  int SyncFolder(int folder);
  int Lock(int file, int operation);  // flock

  virtual ssize_t Read(int file, std::byte* to, size_t bytes, uint64_t offset);
  virtual ssize_t Write(int file, const std::byte* from, size_t bytes,
                        uint64_t offset);
  // Tells the system that these bytes will be read soon, so that it may begin.
  virtual void Announce(int file, uint64_t offset, uint64_t bytes);
  // Tells the system that it need not keep these bytes in its cache.
  virtual void Forget(int file, uint64_t offset, uint64_t bytes);
  virtual int Rename(int folder, const char* from, const char* to);
  virtual int Remove(int folder, const char* name);

  // Returns a queue of up to `depth` reads that are under way at once, or null
  // if the system refuses one.
  virtual std::unique_ptr<ReadQueue> NewRing(int depth);

 protected:
  // One try of the calls above, which a signal may interrupt.
  virtual int TryOpen(int folder, const char* name, int flags, mode_t mode);
  virtual int TryClose(int file);
  virtual int TryAllocate(int file, uint64_t bytes);
  virtual int TrySync(int file);
  virtual int TryLock(int file, int operation);

  // Returns true, with errno set, if a fault has the call fail.
  bool Fails(std::string_view call, size_t bytes = 0) const;
};

// The calls of this machine.
DiskCalls& SystemDisk();

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_DISK_DISK_CALLS_H_
