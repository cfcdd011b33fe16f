#ifndef TIERCEL_OFFLOAD_DISK_READ_QUEUE_H_
#define TIERCEL_OFFLOAD_DISK_READ_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tiercel {

// A read of at least this many bytes is long: copying it out of the system's
// cache is worth another thread, and meanwhile the system reads ahead the bytes
// that follow it in the file.
inline constexpr size_t kLongRead = size_t{1} << 20;

// Reads that are under way at once, done in any order. Used from one thread.
class ReadQueue {
 public:
  struct Request {
    int file = -1;
    std::byte* to = nullptr;  // must live until the read is done
    size_t bytes = 0;
    uint64_t offset = 0;
    uint64_t tag = 0;  // the caller's; Done returns it
  };
  struct Done {
    uint64_t tag = 0;
    int64_t result = 0;  // bytes read, 0 at the end of the file; or -errno
  };
  // Waits until no read is under way, even if the queue has failed.
  virtual ~ReadQueue() = default;

  // Both return 0, or -errno if the queue itself fails; it cannot be used then.
  virtual int Start(const Request& request) = 0;
  // Waits for one of the reads that were started.
  virtual int Wait(Done* done) = 0;
};

// Returns a queue through io_uring, or null if the system refuses it, as old
// kernels and sandboxes do.
std::unique_ptr<ReadQueue> NewRingQueue(int depth);

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_DISK_READ_QUEUE_H_
