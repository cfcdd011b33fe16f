#ifndef TIERCEL_APPS_COMMANDS_NPY_H_
#define TIERCEL_APPS_COMMANDS_NPY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tiercel::cli {

// The first bytes of a NumPy file (format 1.0) of little-endian float32,
// [rows, columns] in C order. A multiple of 64 bytes.
std::string NpyHeader(int64_t rows, int64_t columns);

// Writes such a file row by row. It appears under its name whole, in Finish;
// without Finish nothing is left behind. Where the name is a device or a pipe
// the rows go straight there. Errors: io_error; ReaderGone.
class NpyWriter {
 public:
  // Also asks the file system for the space, so that a disk that is too small
  // is known before the work.
  static absl::StatusOr<NpyWriter> Create(const std::string& path, int64_t rows,
                                          int64_t columns);
  NpyWriter(NpyWriter&& other) noexcept;
  NpyWriter& operator=(NpyWriter&&) = delete;
  ~NpyWriter();

  absl::Status WriteRow(const float* row);  // [columns]
  absl::Status Finish();

 private:
  NpyWriter(std::string path, std::string temporary, int fd, int64_t columns);

  std::string path_;
  std::string temporary_;  // empty: written straight to path_, or finished
  int fd_;
  int64_t columns_;
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_NPY_H_
