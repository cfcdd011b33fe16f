#include "offload/disk/page_reader.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

constexpr int kMostTries = 1000;  // reads without a byte of progress
constexpr size_t kReadAhead = size_t{8} << 20;
constexpr size_t kMostAtOnce = 32;
constexpr size_t kSpanBytes = size_t{2} << 20;

bool TryAgain(int64_t result) { return result == -EAGAIN || result == -EINTR; }

// Makes its reads one after the other, when they are waited for. The system is
// told of them before, so that it reads ahead. It is not told of a long read
// that continues the one before: the system reads ahead for those by itself,
// and faster.
class CallQueue final : public ReadQueue {
 public:
  CallQueue(DiskCalls& disk, size_t depth) : disk_(disk) {
    requests_.reserve(depth);
  }

  int Start(const Request& request) override {
    if (request.bytes < kLongRead || request.file != file_ ||
        request.offset != next_) {
      disk_.Announce(request.file, request.offset, request.bytes);
    }
    file_ = request.file;
    next_ = request.offset + request.bytes;
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
  int file_ = -1;      // the last request's file
  uint64_t next_ = 0;  // and its end there
};

// Runs that follow each other in the file and are read as one.
struct Span {
  size_t first = 0;
  size_t count = 0;
  std::byte* place = nullptr;  // the first run's place; null: in a buffer
};

std::vector<Span> SpansOf(const PageRuns& runs) {
  const size_t most = std::max(size_t{1}, kSpanBytes / runs.bytes);
  std::vector<Span> spans;
  for (size_t i = 0; i < runs.offsets.size(); ++i) {
    std::byte* const place = runs.places.empty() ? nullptr : runs.places[i];
    if (!spans.empty()) {
      Span& last = spans.back();
      std::byte* const next = last.place == nullptr
                                  ? nullptr
                                  : last.place + last.count * runs.bytes;
      if (last.count < most && place == next &&
          runs.offsets[i] == runs.offsets[i - 1] + runs.bytes) {
        ++last.count;
        continue;
      }
    }
    spans.push_back({.first = i, .count = 1, .place = place});
  }
  return spans;
}

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

// ---- Several reads at once ----

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

size_t BufferedReads::Begin(int file, const std::string& name, uint64_t offset,
                            size_t bytes, std::byte* place) {
  const size_t buffer = free_.back();
  free_.pop_back();
  buffers_[buffer] = {
      .file = file,
      .name = &name,
      .to = place != nullptr ? place : memory_ + buffer * bytes_,
      .offset = offset,
      .bytes = bytes,
      .busy = true};
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
      if (buffer.done == buffer.bytes) {
        buffer.busy = false;
        return {.buffer = index};
      }
    } else if (!TryAgain(done.result) || ++buffer.tries == kMostTries) {
      // If the ring cannot read, pread may; only its errors are final.
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
  const int refused = queue().Start({.file = buffer.file,
                                     .to = buffer.to + buffer.done,
                                     .bytes = buffer.bytes - buffer.done,
                                     .offset = buffer.offset + buffer.done,
                                     .tag = index});
  if (refused != 0) LeaveRing();
}

// The ring waits for its reads as it ends; those that are not whole are started
// again through calls.
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
      absl::StrCat("read ", buffer.bytes - buffer.done, " bytes at byte ",
                   buffer.offset + buffer.done);
  return DiskError(*buffer.name, verb, whole.error);
}

size_t ReadsAtOnce(size_t bytes) {
  return std::clamp(kReadAhead / bytes, size_t{2}, kMostAtOnce);
}

// ---- All runs of a file ----

absl::Status ReadPages(
    DiskCalls& disk, const PageRuns& runs,
    absl::FunctionRef<absl::Status(size_t, const std::byte*)> visit,
    absl::FunctionRef<bool()> cancelled, DiskUse* use) {
  const std::vector<Span> spans = SpansOf(runs);
  if (spans.empty()) return absl::OkStatus();
  size_t most = 0;
  bool all_have_places = true;
  for (const Span& span : spans) {
    most = std::max(most, span.count * runs.bytes);
    all_have_places = all_have_places && span.place != nullptr;
  }
  const size_t at_once = std::min(spans.size(), ReadsAtOnce(most));
  std::vector<std::byte> memory(all_have_places ? 0 : at_once * most);
  std::vector<Span> span_of(at_once);  // [buffer]
  BufferedReads reads(disk, memory.data(), most, at_once);
  size_t begun = 0;
  for (size_t whole = 0; whole < spans.size(); ++whole) {
    for (; begun < spans.size() && reads.HasRoom(); ++begun) {
      const Span& span = spans[begun];
      span_of[reads.Begin(runs.file, runs.name, runs.offsets[span.first],
                          span.count * runs.bytes, span.place)] = span;
    }
    const BufferedReads::Whole next = reads.Next(&use->read_bytes);
    if (next.failed) return reads.StatusOf(next);
    const Span& span = span_of[next.buffer];
    for (size_t i = 0; i < span.count; ++i) {
      if (cancelled()) return CancelledError();
      ++use->read_pages;
      RETURN_IF_ERROR(
          visit(span.first + i, reads.BytesOf(next.buffer) + i * runs.bytes));
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
