#ifndef TIERCEL_OFFLOAD_DISK_PAGE_READER_H_
#define TIERCEL_OFFLOAD_DISK_PAGE_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "offload/disk/disk_calls.h"
#include "offload/tier/ledger.h"

namespace tiercel {

// Runs of one length in an open file.
struct PageRuns {
  int file = -1;
  std::string name;  // in errors
  size_t bytes = 0;  // of each
  std::vector<uint64_t> offsets;
};

// Reads all of `runs`, several at once through a ring, or one after the other
// where the system has none, or it fails; gives `visit` each when it is whole,
// by its index, in any order. Short reads and interruptions are continued. What
// `visit` returns ends it, as does `cancelled`, asked before each. Counts what
// is read in `use`. Errors: io_error; out_of_memory; cancelled; visit's.
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
