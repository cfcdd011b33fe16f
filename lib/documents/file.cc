#include "lib/documents/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "lib/documents/encoding.h"
#include "lib/documents/error.h"
#include "lib/documents/file_descriptor.h"

namespace tiercel::document {
namespace {

Error IoError(const std::string& name, const char* what) {
  return {Error::Kind::kIo, errno == ENOENT ? "file_not_found" : "io_error",
          name + ": cannot " + what + ": " + std::strerror(errno)};
}

}  // namespace

std::variant<std::string, Error> ReadFile(const std::string& path) {
  // Non-blocking: a FIFO without a writer must not hang the open.
  const FileDescriptor file(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (file.get() < 0) return IoError(path, "open");
  struct stat status;
  if (fstat(file.get(), &status) != 0) return IoError(path, "stat");
  if (!S_ISREG(status.st_mode)) {
    return InputError(
        path, "not_a_regular_file",
        S_ISDIR(status.st_mode) ? "is a directory" : "is not a regular file");
  }
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size > kMaxFileBytes)
    return TooLarge(path, "the file", size, kMaxFileBytes);
  std::string bytes;
  bytes.resize(size);
  size_t filled = 0;
  while (true) {  // the file may be shorter or longer by now
    if (filled == bytes.size()) bytes.resize(filled + 4096);
    const ssize_t got =
        read(file.get(), bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return IoError(path, "read");
    if (got == 0) break;
    filled += static_cast<size_t>(got);
    if (filled > kMaxFileBytes)
      return TooLarge(path, "the file", filled, kMaxFileBytes);
  }
  bytes.resize(filled);
  return bytes;
}

bool HasExtension(const std::string& name,
                  std::initializer_list<std::string_view> extensions) {
  const std::string lower = Lowercase(name);
  return std::any_of(extensions.begin(), extensions.end(), [&](auto extension) {
    return lower.size() > extension.size() &&
           std::string_view(lower).substr(lower.size() - extension.size()) ==
               extension;
  });
}

}  // namespace tiercel::document
