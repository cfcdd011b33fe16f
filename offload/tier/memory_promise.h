#ifndef TIERCEL_OFFLOAD_TIER_MEMORY_PROMISE_H_
#define TIERCEL_OFFLOAD_TIER_MEMORY_PROMISE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "absl/status/status.h"

namespace tiercel {

// Counts the bytes of a machine's memory that were promised. Memory that is
// taken page by page, as it is first written, still shows as free in the
// system's numbers: a new session must leave room for what earlier ones may
// take yet. Thread-safe.
class MemoryAccount {
 public:
  // `room` says how much may still be promised.
  explicit MemoryAccount(std::function<int64_t()> room)
      : room_(std::move(room)) {}

  int64_t promised() const { return promised_; }
  int64_t room() const { return room_(); }

  // The promised bytes of all accounts of this process that have not been
  // written yet.
  static int64_t Unwritten();
  // A session holds this lock from asking for room until it has promised it.
  static std::mutex& Admission();

 private:
  friend class MemoryPromise;
  void Add(int64_t promised, int64_t unwritten);

  const std::function<int64_t()> room_;
  std::atomic<int64_t> promised_{0};
};

// The bytes that one holder may take while this lives. Used from one thread.
class MemoryPromise {
 public:
  // kToBeTaken: the bytes count as promised and, until then, as unwritten.
  // kTaken: they are allocated and counted elsewhere; here they count only as
  // unwritten.
  enum class Kind { kToBeTaken, kTaken };

  MemoryPromise() = default;  // counts nothing, and Grow always succeeds
  MemoryPromise(std::shared_ptr<MemoryAccount> account, int64_t bytes,
                Kind kind = Kind::kToBeTaken)
      : account_(std::move(account)), kind_(kind) {
    Resize(bytes);
  }
  ~MemoryPromise() {
    NoteWritten(0);
    Resize(0);
  }
  MemoryPromise(MemoryPromise&& other) noexcept { *this = std::move(other); }
  MemoryPromise& operator=(MemoryPromise&& other) noexcept {
    std::swap(account_, other.account_);
    std::swap(kind_, other.kind_);
    std::swap(bytes_, other.bytes_);
    std::swap(written_, other.written_);
    return *this;
  }

  // Sets the promise to `bytes`, without asking whether there is room.
  void Resize(int64_t bytes);
  // Adds `more` bytes, for `what`, to the promise where there is room. Errors:
  // out_of_memory, with the bytes needed and free.
  absl::Status Grow(int64_t more, std::string_view what);
  int64_t bytes() const { return bytes_; }
  // Notes that `bytes` of the promise have been written.
  void NoteWritten(int64_t bytes);

 private:
  int64_t Unwritten() const {
    return bytes_ > written_ ? bytes_ - written_ : 0;
  }

  std::shared_ptr<MemoryAccount> account_;  // null: not counted
  Kind kind_ = Kind::kToBeTaken;
  int64_t bytes_ = 0;
  int64_t written_ = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_TIER_MEMORY_PROMISE_H_
