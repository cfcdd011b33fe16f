#ifndef TIERCEL_APPS_TERMINAL_HISTORY_FILE_H_
#define TIERCEL_APPS_TERMINAL_HISTORY_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tiercel::cli {

// A file of lines that the user typed, from which the next run recalls them.
// Only its owner can read the file (0600) and its folder (0700), which are made
// when the first line is kept. Several programs may append to it.
class HistoryFile {
 public:
  static constexpr size_t kMostLines = 1000;

  // `path` is absolute; empty: nothing is kept.
  explicit HistoryFile(std::string path) : path_(std::move(path)) {}

  // Returns the newest kMostLines lines, the oldest of them first; none if the
  // file cannot be read. Cuts a file of over twice as many to these.
  std::vector<std::string> Load() const;

  // `line` has no line ends. Errors: kIo.
  absl::Status Append(const std::string& line) const;

 private:
  absl::Status MakeFolder() const;
  absl::Status Write(const std::string& path, int flags,
                     const std::string& text) const;

  const std::string path_;
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_TERMINAL_HISTORY_FILE_H_
