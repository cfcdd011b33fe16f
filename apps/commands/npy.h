#ifndef TIERCEL_APPS_COMMANDS_NPY_H_
#define TIERCEL_APPS_COMMANDS_NPY_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/commands/whole_file.h"

namespace tiercel::cli {

// The first bytes of a NumPy file (format 1.0) of little-endian float32,
// [rows, columns] in C order. A multiple of 64 bytes.
std::string NpyHeader(int64_t rows, int64_t columns);

// Writes such a file row by row, as a WholeFile: whole or not at all. Errors:
// io_error; ReaderGone.
class NpyWriter {
 public:
  // Also asks the file system for the space, so that a disk that is too small
  // is known before the work.
  static absl::StatusOr<NpyWriter> Create(const std::string& path, int64_t rows,
                                          int64_t columns);

  absl::Status WriteRow(const float* row);  // [columns]
  absl::Status Finish() { return file_.Finish(); }

 private:
  NpyWriter(WholeFile file, int64_t columns)
      : file_(std::move(file)), columns_(columns) {}

  WholeFile file_;
  int64_t columns_;
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_NPY_H_
