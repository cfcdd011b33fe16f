#ifndef TIERCEL_OFFLOAD_DISK_FILE_WRITER_H_
#define TIERCEL_OFFLOAD_DISK_FILE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "offload/disk/disk_calls.h"

namespace tiercel {

// Writes to an open file. It lets only a few megabytes be on their way to the
// disk before it waits for them, so that a writer that is stopped ends soon.
// Errors of both functions: disk_full, io_error.
class FileWriter {
 public:
  // The number of bytes that is best written at once.
  static constexpr size_t kAtOnce = size_t{4} << 20;

  // `name`, which errors give, outlives this.
  FileWriter(DiskCalls& disk, int file, const std::string& name)
      : disk_(disk), file_(file), name_(name) {}

  absl::Status Write(const std::byte* from, size_t bytes, uint64_t offset);
  // Returns when all that was written is on the disk. Syncing again after an
  // error proves nothing: the system may have dropped what it could not write,
  // and reports that once.
  absl::Status Sync();

 private:
  DiskCalls& disk_;
  const int file_;
  const std::string& name_;
  uint64_t unsynced_ = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_DISK_FILE_WRITER_H_
