#ifndef TIERCEL_OFFLOAD_DISK_READ_QUEUE_H_
#define TIERCEL_OFFLOAD_DISK_READ_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tiercel {

// Copying so many bytes out of the system's memory is worth another thread, and
// what follows them in the file the system has begun to read by then.
inline constexpr size_t kLongRead = size_t{1} << 20;

// Reads that are under way at once, done in any order. Used from one thread.
class ReadQueue {
 public:
  struct Request {
    int file = -1;
    std::byte* to = nullptr;  // stays until the read is done
    size_t bytes = 0;
    uint64_t offset = 0;
    uint64_t tag = 0;  // the caller's, given back
  };
  struct Done {
    uint64_t tag = 0;
    int64_t result = 0;  // bytes read, 0 at the end of the file; or -errno
  };
  // Nothing is under way afterwards, whatever has failed.
  virtual ~ReadQueue() = default;

  // Both give 0, or -errno where the queue itself fails: it is of no use then.
  virtual int Start(const Request& request) = 0;
  // Waits for one of those that were started.
  virtual int Wait(Done* done) = 0;
};

// Through io_uring; null where the system refuses: an old kernel, a sandbox.
std::unique_ptr<ReadQueue> NewRingQueue(int depth);

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_DISK_READ_QUEUE_H_
