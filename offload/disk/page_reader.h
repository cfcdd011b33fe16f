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

// Several reads that are under way at once through a ring. If the system
// refuses a ring, or it fails, they are made one after the other. Short reads
// and interruptions are continued. Used from one thread.
class BufferedReads {
 public:
  // `memory`, which outlives this, has `at_once` buffers of `bytes` each; it
  // may be null if every read is given a place.
  BufferedReads(DiskCalls& disk, std::byte* memory, size_t bytes,
                size_t at_once);
  ~BufferedReads();  // waits until no read is under way
  BufferedReads(const BufferedReads&) = delete;
  BufferedReads& operator=(const BufferedReads&) = delete;

  bool HasRoom() const { return !free_.empty(); }
  // Begins to read `bytes`, at most a buffer's, from byte `offset` of an open
  // file, and returns the number of the buffer that it takes. If `place` is not
  // null it is filled instead of the buffer. `place` and `name`, which errors
  // give, must live until the read is whole.
  size_t Begin(int file, const std::string& name, uint64_t offset, size_t bytes,
               std::byte* place = nullptr);
  // Waits until one of the reads that were begun is whole or has failed. Adds
  // the bytes read to `read_bytes`. Allocates no memory.
  struct Whole {
    size_t buffer = 0;
    bool failed = false;
    int error = 0;  // an errno; 0: the file ends there
  };
  Whole Next(uint64_t* read_bytes);
  // Returns the error of a read that has failed. Errors: io_error.
  absl::Status StatusOf(const Whole& whole) const;
  const std::byte* BytesOf(size_t buffer) const { return buffers_[buffer].to; }
  // Gives a buffer back, whose bytes are no longer needed.
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
  std::unique_ptr<ReadQueue> ring_;  // null: refused, or it has failed
};

// The number of reads of `bytes` each that are best under way at once.
size_t ReadsAtOnce(size_t bytes);

// Runs of equal length in an open file.
struct PageRuns {
  int file = -1;
  std::string name;  // for errors
  size_t bytes = 0;  // bytes of each run
  std::vector<uint64_t> offsets;
  // The address that each run is read to; a run whose place is null, and every
  // run if the list is empty, is read to a buffer.
  std::vector<std::byte*> places = {};
};

// Reads all of `runs`, several at once through a ring; if the system refuses a
// ring, or it fails, one after the other. Calls `visit` with the index of each
// run when it is whole, in any order. Runs that follow each other in the list,
// in the file and in their places are read together, up to 2 MiB. Short reads
// and interruptions are continued. An error of `visit` ends the reading, and so
// does `cancelled`, which is called before each visit. Counts what is read in
// `use`. Errors: io_error; out_of_memory; cancelled; visit's.
absl::Status ReadPages(
    DiskCalls& disk, const PageRuns& runs,
    absl::FunctionRef<absl::Status(size_t, const std::byte*)> visit,
    absl::FunctionRef<bool()> cancelled, DiskUse* use);

// Reads `bytes` from `offset` to `to`. Errors: io_error.
absl::Status ReadRange(DiskCalls& disk, int file, const std::string& name,
                       uint64_t offset, std::byte* to, size_t bytes);

// Returns "name: cannot verb: why" as an error of class kIo. Its code is
// "disk_full" if the disk has no room, else "io_error".
absl::Status DiskError(const std::string& name, const std::string& verb,
                       int error);

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_DISK_PAGE_READER_H_
