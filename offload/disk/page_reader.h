#ifndef TIERCEL_OFFLOAD_DISK_PAGE_READER_H_
#define TIERCEL_OFFLOAD_DISK_PAGE_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "offload/disk/disk_calls.h"
#include "offload/disk/read_queue.h"
#include "offload/tier/ledger.h"

namespace tiercel {

// Reads that are under way at once, through a ring, or one after
// the other where the system has none, or it fails. Short reads and
// interruptions are continued. Used from one thread.
class BufferedReads {
 public:
  // `at_once` buffers of `bytes` each in `memory`, which outlives it; null
  // where all that is read has a place of its own.
  BufferedReads(DiskCalls& disk, std::byte* memory, size_t bytes,
                size_t at_once);
  ~BufferedReads();  // nothing is under way afterwards
  BufferedReads(const BufferedReads&) = delete;
  BufferedReads& operator=(const BufferedReads&) = delete;

  bool HasRoom() const { return !free_.empty(); }
  // Begins to read `bytes`, no more than a buffer's, from byte `offset` of an
  // open file; which buffer it takes. It fills `place`, unless that is null,
  // in the buffer's stead. `name`, in errors, stays until that is whole, as the
  // place does.
  size_t Begin(int file, const std::string& name, uint64_t offset, size_t bytes,
               std::byte* place = nullptr);
  // Waits for one that was begun: it is whole, or cannot be read. Counts what
  // was read. Takes no memory.
  struct Whole {
    size_t buffer = 0;
    bool failed = false;
    int error = 0;  // errno's; 0: the file ends
  };
  Whole Next(uint64_t* read_bytes);
  // Why a read that has failed did so. Errors: io_error.
  absl::Status StatusOf(const Whole& whole) const;
  const std::byte* BytesOf(size_t buffer) const { return buffers_[buffer].to; }
  // What it held is of no use any more.
  void Free(size_t buffer) { free_.push_back(buffer); }

 private:
  struct Buffer {
    int file = -1;
    const std::string* name = nullptr;
    std::byte* to = nullptr;
    uint64_t offset = 0;
    size_t bytes = 0;
    size_t done = 0;
    int tries = 0;
    bool busy = false;
  };

  void Start(size_t index);
  void LeaveRing();
  ReadQueue& queue() { return ring_ != nullptr ? *ring_ : *calls_; }

  std::byte* const memory_;
  const size_t bytes_;
  std::vector<Buffer> buffers_;
  std::vector<size_t> free_;
  const std::unique_ptr<ReadQueue> calls_;
  std::unique_ptr<ReadQueue> ring_;  // null: none, or it has failed
};

// How many runs of so many bytes are best read at once.
size_t ReadsAtOnce(size_t bytes);

// Runs of one length in an open file.
struct PageRuns {
  int file = -1;
  std::string name;  // in errors
  size_t bytes = 0;  // of each
  std::vector<uint64_t> offsets;
  // Where each is to be; null, and where the list is empty: anywhere.
  std::vector<std::byte*> places = {};
};

// Reads all of `runs`, several at once through a ring, or one after the other
// where the system has none, or it fails; gives `visit` each when it is whole,
// by its index, in any order. Those that follow each other in the file, as they
// do in the list, and in their places, are read together, up to 2 MiB. Short
// reads and interruptions are continued. What `visit` returns ends it, as does
// `cancelled`, asked before each. Counts what is read in `use`. Errors:
// io_error; out_of_memory; cancelled; visit's.
absl::Status ReadPages(
    DiskCalls& disk, const PageRuns& runs,
    absl::FunctionRef<absl::Status(size_t, const std::byte*)> visit,
    absl::FunctionRef<bool()> cancelled, DiskUse* use);

// Fills `to` from `offset`. Errors: io_error.
absl::Status ReadRange(DiskCalls& disk, int file, const std::string& name,
                       uint64_t offset, std::byte* to, size_t bytes);

// "name: cannot verb: why" as an error of class kIo: "disk_full" where there is
// no room, else "io_error".
absl::Status DiskError(const std::string& name, const std::string& verb,
                       int error);

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_DISK_PAGE_READER_H_
