#include "offload/disk/page_reader.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>

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
  CallQueue(DiskCalls& disk, size_t depth) : disk_(disk) {
    requests_.reserve(depth);
  }

  int Start(const Request& request) override {
    requests_.push_back(request);
    return 0;
  }
  int Wait(Done* done) override {
    const Request next = requests_.front();
    requests_.erase(requests_.begin());
    const ssize_t got = disk_.Read(next.file, next.to, next.bytes, next.offset);
    *done = {next.tag, got < 0 ? -errno : got};
    return 0;
  }

 private:
  DiskCalls& disk_;
  std::vector<Request> requests_;
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

// ---- Several at once ----

BufferedReads::BufferedReads(DiskCalls& disk, std::byte* memory, size_t bytes,
                             size_t at_once)
    : memory_(memory),
      bytes_(bytes),
      buffers_(at_once),
      calls_(std::make_unique<CallQueue>(disk, at_once)),
      ring_(disk.NewRing(static_cast<int>(at_once))) {
  for (size_t i = 0; i < at_once; ++i) free_.push_back(i);
}

BufferedReads::~BufferedReads() = default;

size_t BufferedReads::Begin(int file, const std::string& name,
                            uint64_t offset) {
  const size_t buffer = free_.back();
  free_.pop_back();
  buffers_[buffer] = {
      .file = file, .name = &name, .offset = offset, .busy = true};
  Start(buffer);
  return buffer;
}

BufferedReads::Whole BufferedReads::Next(uint64_t* read_bytes) {
  for (;;) {
    ReadQueue::Done done;
    if (queue().Wait(&done) != 0) {
      LeaveRing();
      continue;
    }
    const auto index = static_cast<size_t>(done.tag);
    Buffer& buffer = buffers_[index];
    if (done.result > 0) {
      buffer.done += static_cast<size_t>(done.result);
      buffer.tries = 0;
      *read_bytes += static_cast<uint64_t>(done.result);
      if (buffer.done == bytes_) {
        buffer.busy = false;
        return {.buffer = index};
      }
    } else if (!TryAgain(done.result) || ++buffer.tries == kMostTries) {
      // What a ring cannot read pread may; and it has the last word.
      if (ring_ == nullptr) {
        buffer.busy = false;
        return {index, /*failed=*/true, static_cast<int>(-done.result)};
      }
      LeaveRing();
      continue;
    }
    Start(index);
  }
}

void BufferedReads::Start(size_t index) {
  const Buffer& buffer = buffers_[index];
  const int refused =
      queue().Start({.file = buffer.file,
                     .to = memory_ + index * bytes_ + buffer.done,
                     .bytes = bytes_ - buffer.done,
                     .offset = buffer.offset + buffer.done,
                     .tag = index});
  if (refused != 0) LeaveRing();
}

// The ring waits for what it was given; all that is not whole is asked for
// again.
void BufferedReads::LeaveRing() {
  ring_.reset();
  for (size_t i = 0; i < buffers_.size(); ++i) {
    buffers_[i].tries = 0;
    if (buffers_[i].busy) Start(i);
  }
}

absl::Status BufferedReads::StatusOf(const Whole& whole) const {
  const Buffer& buffer = buffers_[whole.buffer];
  const std::string verb =
      absl::StrCat("read ", bytes_ - buffer.done, " bytes at byte ",
                   buffer.offset + buffer.done);
  return DiskError(*buffer.name, verb, whole.error);
}

size_t ReadsAtOnce(size_t bytes) {
  return std::clamp(kReadAhead / bytes, size_t{2}, kMostAtOnce);
}

// ---- All of one file ----

absl::Status ReadPages(
    DiskCalls& disk, const PageRuns& runs,
    absl::FunctionRef<absl::Status(size_t, const std::byte*)> visit,
    absl::FunctionRef<bool()> cancelled, DiskUse* use) {
  const size_t count = runs.offsets.size();
  if (count == 0) return absl::OkStatus();
  const size_t at_once = std::min(count, ReadsAtOnce(runs.bytes));
  std::vector<std::byte> memory(at_once * runs.bytes);
  std::vector<size_t> run_of(at_once);  // [buffer]
  BufferedReads reads(disk, memory.data(), runs.bytes, at_once);
  size_t begun = 0;
  for (size_t whole = 0; whole < count; ++whole) {
    if (cancelled()) return CancelledError();
    for (; begun < count && reads.HasRoom(); ++begun) {
      run_of[reads.Begin(runs.file, runs.name, runs.offsets[begun])] = begun;
    }
    const BufferedReads::Whole next = reads.Next(&use->read_bytes);
    if (next.failed) return reads.StatusOf(next);
    ++use->read_pages;
    if (absl::Status s = visit(run_of[next.buffer], reads.BytesOf(next.buffer));
        !s.ok()) {
      return s;
    }
    reads.Free(next.buffer);
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
