#include "apps/commands/npy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/terminal/output.h"

namespace tiercel::cli {
namespace {

static_assert(std::endian::native == std::endian::little);

// What `path` leads to through symbolic links: those stay what they are.
std::string Resolved(const std::string& path) {
  char* resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  std::string result = resolved;
  free(resolved);
  return result;
}

// A rename lasts only once its directory is on the disk too.
absl::Status SyncDirectory(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string directory =
      slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd == -1) return SystemError("opening '" + directory + "'");
  // Some file systems have no sync of directories; then there is none to miss.
  const bool failed = fsync(fd) == -1 && errno != EINVAL;
  absl::Status status =
      failed ? SystemError("writing '" + directory + "'") : absl::OkStatus();
  close(fd);
  return status;
}

}  // namespace

std::string NpyHeader(int64_t rows, int64_t columns) {
  constexpr size_t kPrefix = 10;  // magic, version, length of the rest
  std::string dict =
      absl::StrCat("{'descr': '<f4', 'fortran_order': False, 'shape': (", rows,
                   ", ", columns, "), }");
  while ((kPrefix + dict.size() + 1) % 64 != 0) dict += ' ';
  dict += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(dict.size() % 256);
  header += static_cast<char>(dict.size() / 256);
  return header + dict;
}

NpyWriter::NpyWriter(std::string path, std::string temporary, int fd,
                     int64_t columns)
    : path_(std::move(path)),
      temporary_(std::move(temporary)),
      fd_(fd),
      columns_(columns) {}

NpyWriter::NpyWriter(NpyWriter&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, "")),
      fd_(std::exchange(other.fd_, -1)),
      columns_(other.columns_) {}

NpyWriter::~NpyWriter() {
  if (fd_ != -1) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

absl::StatusOr<NpyWriter> NpyWriter::Create(const std::string& path,
                                            int64_t rows, int64_t columns) {
  const std::string target = Resolved(path);
  struct stat info;
  const bool exists = stat(target.c_str(), &info) == 0;
  const bool straight = exists && !S_ISREG(info.st_mode);
  const std::string temporary =
      straight ? "" : absl::StrCat(target, ".", getpid(), ".tmp");
  const int fd = straight ? open(target.c_str(), O_WRONLY | O_CLOEXEC)
                          : open(temporary.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd == -1) return SystemError("opening '" + path + "' for writing");
  NpyWriter writer(target, temporary, fd, columns);

  const std::string header = NpyHeader(rows, columns);
  if (!straight) {
    const auto bytes = static_cast<off_t>(header.size()) + rows * columns * 4;
    const int error = posix_fallocate(fd, 0, bytes);
    // EINVAL, EOPNOTSUPP: the file system cannot promise space; writes tell.
    if (error == ENOSPC || error == EFBIG || error == EDQUOT) {
      errno = error;
      return SystemError(
          absl::StrCat("writing '", path, "', ", bytes, " bytes"));
    }
  }
  if (absl::Status s = WriteAll(fd, header, "'" + path + "'"); !s.ok()) {
    return s;
  }
  return writer;
}

absl::Status NpyWriter::WriteRow(const float* row) {
  const std::string_view bytes(reinterpret_cast<const char*>(row),
                               static_cast<size_t>(columns_) * sizeof(float));
  return WriteAll(fd_, bytes, "'" + path_ + "'");
}

absl::Status NpyWriter::Finish() {
  const std::string writing = "writing '" + path_ + "'";
  if (!temporary_.empty() && fdatasync(fd_) == -1) return SystemError(writing);
  if (close(std::exchange(fd_, -1)) == -1) return SystemError(writing);
  if (temporary_.empty()) return absl::OkStatus();
  if (rename(temporary_.c_str(), path_.c_str()) == -1) {
    return SystemError(writing);
  }
  temporary_.clear();
  return SyncDirectory(path_);
}

}  // namespace tiercel::cli
