#include "apps/commands/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/terminal/output.h"

namespace tiercel::cli {
namespace {

// The path of the file to which `path` leads through symbolic links.
std::string Resolved(const std::string& path) {
  char* resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  std::string result = resolved;
  free(resolved);
  return result;
}

// Repeats a call while a signal interrupts it.
template <typename Call>
int Uninterrupted(Call call) {
  for (;;) {
    const int result = call();
    if (result != -1 || errno != EINTR) return result;
  }
}

// A rename lasts only once its directory is on the disk too.
absl::Status SyncDirectory(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string directory =
      slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd == -1) return SystemError("opening '" + directory + "'");
  // Some file systems cannot sync directories, which is no failure.
  const bool failed = Uninterrupted([fd] { return fsync(fd); }) == -1 &&
                      errno != EINVAL && errno != ENOTSUP && errno != ENOSYS &&
                      errno != EROFS;
  absl::Status status =
      failed ? SystemError("writing '" + directory + "'") : absl::OkStatus();
  close(fd);
  return status;
}

}  // namespace

WholeFile::WholeFile(std::string path, std::string temporary, int fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

WholeFile::WholeFile(WholeFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, "")),
      fd_(std::exchange(other.fd_, -1)) {}

WholeFile::~WholeFile() {
  if (fd_ != -1) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

absl::StatusOr<WholeFile> WholeFile::Create(const std::string& path,
                                            mode_t mode, int64_t bytes) {
  const std::string target = Resolved(path);
  struct stat info;
  const bool exists = stat(target.c_str(), &info) == 0;
  const bool straight = exists && !S_ISREG(info.st_mode);
  const std::string temporary =
      straight ? "" : absl::StrCat(target, ".", getpid(), ".tmp");
  const auto make = [&] {
    return Uninterrupted([&] {
      return open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                  mode);
    });
  };
  int fd = straight ? open(target.c_str(), O_WRONLY | O_CLOEXEC) : make();
  // A killed process with this number left its file behind.
  if (fd == -1 && !straight && errno == EEXIST &&
      unlink(temporary.c_str()) == 0) {
    fd = make();
  }
  if (fd == -1) return SystemError("opening '" + path + "' for writing");
  WholeFile file(target, temporary, fd);
  // The new file takes the permissions of the one that it replaces.
  if (exists && !straight) fchmod(fd, info.st_mode & 07777);
  if (!straight && bytes > 0) {
    const int error = posix_fallocate(fd, 0, bytes);
    // With EINVAL or EOPNOTSUPP the file system cannot reserve space; writes
    // will fail if there is none.
    if (error == ENOSPC || error == EFBIG || error == EDQUOT) {
      errno = error;
      return SystemError(
          absl::StrCat("writing '", path, "', ", bytes, " bytes"));
    }
  }
  return file;
}

absl::Status WholeFile::Write(std::string_view bytes) {
  return WriteAll(fd_, bytes, "'" + path_ + "'");
}

absl::Status WholeFile::Finish() {
  const std::string writing = "writing '" + path_ + "'";
  if (!temporary_.empty() &&
      Uninterrupted([this] { return fdatasync(fd_); }) == -1) {
    return SystemError(writing);
  }
  // An interrupted close has closed the file.
  if (close(std::exchange(fd_, -1)) == -1 && errno != EINTR) {
    return SystemError(writing);
  }
  if (temporary_.empty()) return absl::OkStatus();
  if (rename(temporary_.c_str(), path_.c_str()) == -1) {
    return SystemError(writing);
  }
  temporary_.clear();
  return SyncDirectory(path_);
}

}  // namespace tiercel::cli
