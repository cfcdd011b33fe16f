#include "offload/disk/page_reader.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <memory>
#include <system_error>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/error.h"

namespace tiercel {
namespace {

constexpr int kMostTries = 1000;  // without a byte of progress
constexpr size_t kReadAhead = size_t{8} << 20;
constexpr size_t kMostAtOnce = 32;

bool TryAgain(int64_t result) { return result == -EAGAIN || result == -EINTR; }

// Reads one after the other, when they are waited for.
class CallQueue final : public ReadQueue {
 public:
  explicit CallQueue(DiskCalls& disk) : disk_(disk) {}

  int Start(const Request& request) override {
    requests_.push_back(request);
    return 0;
  }
  int Wait(Done* done) override {
    const Request next = requests_.front();
    requests_.pop_front();
    const ssize_t got = disk_.Read(next.file, next.to, next.bytes, next.offset);
    *done = {next.tag, got < 0 ? -errno : got};
    return 0;
  }

 private:
  DiskCalls& disk_;
  std::deque<Request> requests_;
};

// The buffers that reads go to, and which run each has.
class Reading {
 public:
  Reading(DiskCalls& disk, const PageRuns& runs, size_t at_once)
      : disk_(disk),
        runs_(runs),
        memory_(at_once * runs.bytes),
        buffers_(at_once),
        queue_(disk.NewRing(static_cast<int>(at_once))),
        by_ring_(queue_ != nullptr) {
    if (!by_ring_) queue_ = std::make_unique<CallQueue>(disk);
    for (size_t i = 0; i < at_once; ++i) free_.push_back(i);
  }
  // Nothing is read into memory that is gone.
  ~Reading() { queue_.reset(); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  bool HasRoom() const { return !free_.empty(); }
  void Begin(size_t run) {
    const size_t buffer = free_.back();
    free_.pop_back();
    buffers_[buffer] = {.run = run, .busy = true};
    Start(buffer);
  }

  // Waits for a run to be whole: its buffer. Errors: io_error.
  absl::StatusOr<size_t> Next(DiskUse* use) {
    for (;;) {
      ReadQueue::Done done;
      if (queue_->Wait(&done) != 0) {
        LeaveRing();
        continue;
      }
      const auto index = static_cast<size_t>(done.tag);
      Buffer& buffer = buffers_[index];
      if (done.result > 0) {
        buffer.done += static_cast<size_t>(done.result);
        buffer.tries = 0;
        use->read_bytes += static_cast<uint64_t>(done.result);
        if (buffer.done == runs_.bytes) return index;
      } else if (!TryAgain(done.result) || ++buffer.tries == kMostTries) {
        // What a ring cannot read pread may; and it has the last word.
        if (!by_ring_) return Fail(buffer, static_cast<int>(-done.result));
        LeaveRing();
        continue;
      }
      Start(index);
    }
  }
  const std::byte* BytesOf(size_t buffer) const {
    return memory_.data() + buffer * runs_.bytes;
  }
  size_t RunOf(size_t buffer) const { return buffers_[buffer].run; }
  void Free(size_t buffer) {
    buffers_[buffer].busy = false;
    free_.push_back(buffer);
  }

 private:
  struct Buffer {
    size_t run = 0;
    size_t done = 0;
    int tries = 0;
    bool busy = false;
  };

  void Start(size_t index) {
    const Buffer& buffer = buffers_[index];
    const int refused =
        queue_->Start({.file = runs_.file,
                       .to = memory_.data() + index * runs_.bytes + buffer.done,
                       .bytes = runs_.bytes - buffer.done,
                       .offset = runs_.offsets[buffer.run] + buffer.done,
                       .tag = index});
    if (refused != 0) LeaveRing();
  }

  // The ring waits for what it was given; all that is not whole is asked for
  // again.
  void LeaveRing() {
    queue_ = std::make_unique<CallQueue>(disk_);
    by_ring_ = false;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      buffers_[i].tries = 0;
      if (buffers_[i].busy) Start(i);
    }
  }

  absl::Status Fail(const Buffer& buffer, int error) const {
    const std::string verb =
        absl::StrCat("read ", runs_.bytes - buffer.done, " bytes at byte ",
                     runs_.offsets[buffer.run] + buffer.done);
    return DiskError(runs_.name, verb, error);
  }

  DiskCalls& disk_;
  const PageRuns& runs_;
  std::vector<std::byte> memory_;
  std::vector<Buffer> buffers_;
  std::vector<size_t> free_;
  std::unique_ptr<ReadQueue> queue_;
  bool by_ring_;
};

}  // namespace

absl::Status DiskError(const std::string& name, const std::string& verb,
                       int error) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return IoError(
      full ? "disk_full" : "io_error",
      absl::StrCat(name, ": cannot ", verb, ": ",
                   error == 0 ? std::string("the file ends there")
                              : std::generic_category().message(error)));
}

absl::Status ReadPages(
    DiskCalls& disk, const PageRuns& runs,
    absl::FunctionRef<absl::Status(size_t, const std::byte*)> visit,
    absl::FunctionRef<bool()> cancelled, DiskUse* use) {
  const size_t count = runs.offsets.size();
  if (count == 0) return absl::OkStatus();
  const size_t at_once = std::min(
      count, std::clamp(kReadAhead / runs.bytes, size_t{2}, kMostAtOnce));
  Reading reading(disk, runs, at_once);
  size_t begun = 0;
  for (size_t whole = 0; whole < count; ++whole) {
    if (cancelled()) return CancelledError();
    while (begun < count && reading.HasRoom()) reading.Begin(begun++);
    const absl::StatusOr<size_t> buffer = reading.Next(use);
    if (!buffer.ok()) return buffer.status();
    ++use->read_pages;
    if (absl::Status s =
            visit(reading.RunOf(*buffer), reading.BytesOf(*buffer));
        !s.ok()) {
      return s;
    }
    reading.Free(*buffer);
  }
  return absl::OkStatus();
}

absl::Status ReadRange(DiskCalls& disk, int file, const std::string& name,
                       uint64_t offset, std::byte* to, size_t bytes) {
  size_t done = 0;
  int tries = 0;
  while (done < bytes) {
    const ssize_t got = disk.Read(file, to + done, bytes - done, offset + done);
    const int error = got < 0 ? errno : 0;
    if (got > 0) {
      done += static_cast<size_t>(got);
      tries = 0;
    } else if (!TryAgain(-error) || ++tries == kMostTries) {
      return DiskError(
          name,
          absl::StrCat("read ", bytes - done, " bytes at byte ", offset + done),
          error);
    }
  }
  return absl::OkStatus();
}

}  // namespace tiercel
