#include "apps/terminal/history_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "apps/cli/error.h"
#include "apps/terminal/output.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {

std::vector<std::string> HistoryFile::Load() const {
  std::vector<std::string> lines;
  std::ifstream file(path_);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) lines.push_back(std::move(line));
  }
  const bool long_since = lines.size() > 2 * kMostLines;
  if (lines.size() > kMostLines) {
    lines.erase(lines.begin(), lines.end() - kMostLines);
  }
  if (long_since) {
    // A line that another program appends meanwhile may be lost; no other line
    // is.
    const std::string cut = absl::StrCat(path_, ".", getpid());
    const absl::Status written =
        Write(cut, O_CREAT | O_EXCL, absl::StrJoin(lines, "\n") + "\n");
    if (!written.ok() || std::rename(cut.c_str(), path_.c_str()) != 0) {
      unlink(cut.c_str());
    }
  }
  return lines;
}

absl::Status HistoryFile::Append(const std::string& line) const {
  if (path_.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(MakeFolder());
  return Write(path_, O_CREAT | O_APPEND, line + "\n");
}

absl::Status HistoryFile::MakeFolder() const {
  for (size_t end = path_.find('/', 1); end != std::string::npos;
       end = path_.find('/', end + 1)) {
    const std::string folder = path_.substr(0, end);
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
      return SystemError("making the folder '" + folder + "'");
    }
  }
  return absl::OkStatus();
}

absl::Status HistoryFile::Write(const std::string& path, int flags,
                                const std::string& text) const {
  const int fd =
      open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags,
           0600);
  if (fd < 0) return SystemError("opening '" + path + "'");
  const absl::Status written = WriteAll(fd, text, "to '" + path + "'");
  close(fd);
  return written;
}

}  // namespace tiercel::cli
