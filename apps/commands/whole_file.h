#ifndef TIERCEL_APPS_COMMANDS_WHOLE_FILE_H_
#define TIERCEL_APPS_COMMANDS_WHOLE_FILE_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tiercel::cli {

// A file that appears under its name whole and on the disk, in Finish; without
// Finish no file is left behind. It replaces the file to which symbolic links
// lead, not the links. If that is a device or a pipe, the bytes go straight
// there. Errors: io_error; ReaderGone.
class WholeFile {
 public:
  // Creates it with the permissions of `mode`, less the process's mask. If
  // `bytes` is not 0, the file system is asked for that much space, so that a
  // disk that is too small is known before the work.
  static absl::StatusOr<WholeFile> Create(const std::string& path, mode_t mode,
                                          int64_t bytes = 0);
  WholeFile(WholeFile&& other) noexcept;
  WholeFile& operator=(WholeFile&&) = delete;
  ~WholeFile();

  absl::Status Write(std::string_view bytes);
  absl::Status Finish();

 private:
  WholeFile(std::string path, std::string temporary, int fd);

  std::string path_;
  std::string temporary_;  // empty: written straight to path_, or finished
  int fd_;
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_WHOLE_FILE_H_
