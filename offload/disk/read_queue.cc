#include "offload/disk/read_queue.h"

#include <liburing.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace tiercel {
namespace {

// A queue over liburing, whose calls return -errno and leave errno alone.
class RingQueue final : public ReadQueue {
 public:
  RingQueue() = default;
  bool Init(int depth) {
    ready_ = io_uring_queue_init(static_cast<unsigned>(depth), &ring_,
                                 /*flags=*/0) == 0;
    return ready_;
  }
  ~RingQueue() override {
    if (!ready_) return;
    Done done;
    while (under_way_ > 0 && Wait(&done) == 0) {
    }
    // If waiting fails the system still goes on with its reads, into memory
    // that is about to be freed. The ring, which this process can see, says
    // when they are done.
    while (under_way_ > 0) {
      std::this_thread::sleep_for(kMoment);
      const unsigned done_since = io_uring_cq_ready(&ring_);
      io_uring_cq_advance(&ring_, done_since);
      under_way_ -= static_cast<int>(done_since);
    }
    io_uring_queue_exit(&ring_);
  }
  RingQueue(const RingQueue&) = delete;
  RingQueue& operator=(const RingQueue&) = delete;

  int Start(const Request& request) override {
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
    if (entry == nullptr) return -EBUSY;
    io_uring_prep_read(entry, request.file, request.to,
                       static_cast<unsigned>(request.bytes), request.offset);
    io_uring_sqe_set_data64(entry, request.tag);
    // A thread of the system reads it, while this one handles other reads.
    if (request.bytes >= kLongRead) {
      io_uring_sqe_set_flags(entry, IOSQE_ASYNC);
    }
    // The system may take fewer than were queued; the next call submits the
    // rest.
    for (int tries = 0;; ++tries) {
      const int taken = io_uring_submit(&ring_);
      if (taken > 0) break;
      const bool again = taken == 0 || taken == -EINTR || taken == -EAGAIN;
      if (!again || tries == kMostTries) return taken < 0 ? taken : -EAGAIN;
    }
    ++under_way_;
    return 0;
  }

  int Wait(Done* done) override {
    io_uring_cqe* entry = nullptr;
    for (;;) {
      const int result = io_uring_wait_cqe(&ring_, &entry);
      if (result == 0) break;
      if (result != -EINTR && result != -EAGAIN) return result;
    }
    *done = {entry->user_data, entry->res};
    io_uring_cqe_seen(&ring_, entry);
    --under_way_;
    return 0;
  }

 private:
  static constexpr int kMostTries = 1000;
  static constexpr std::chrono::microseconds kMoment{100};

  io_uring ring_ = {};
  bool ready_ = false;
  int under_way_ = 0;
};

}  // namespace

std::unique_ptr<ReadQueue> NewRingQueue(int depth) {
  auto queue = std::make_unique<RingQueue>();
  return queue->Init(depth) ? std::move(queue) : nullptr;
}

}  // namespace tiercel
