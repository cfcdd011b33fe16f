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

std::variant<std::unique_ptr<OpenedFile>, Error> OpenFile(
    const std::string& path) {
  // Non-blocking: a FIFO without a writer must not hang the open.
  const int fd =
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) return IoError(path, "open");
  std::unique_ptr<OpenedFile> opened(new OpenedFile{FileDescriptor(fd), 0});
  struct stat status;
  if (fstat(fd, &status) != 0) return IoError(path, "stat");
  if (!S_ISREG(status.st_mode)) {
    return InputError(
        path, "not_a_regular_file",
        S_ISDIR(status.st_mode) ? "is a directory" : "is not a regular file");
  }
  opened->bytes = static_cast<uint64_t>(status.st_size);
  return opened;
}

std::string FirstBytes(const OpenedFile& file, size_t most) {
  std::string bytes(most, '\0');
  const ssize_t got = pread(file.file.get(), bytes.data(), most, 0);
  bytes.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return bytes;
}

std::variant<std::string, Error> ReadFile(const std::string& path) {
  auto opened = OpenFile(path);
  if (Error* error = std::get_if<Error>(&opened)) return std::move(*error);
  return ReadFile(path, *std::get<std::unique_ptr<OpenedFile>>(opened));
}

std::variant<std::string, Error> ReadFile(const std::string& path,
                                          const OpenedFile& file) {
  const uint64_t size = file.bytes;
  if (size > kMaxFileBytes) {
    return TooLarge(path, "the file", size, kMaxFileBytes);
  }
  std::string bytes;
  bytes.resize(size);
  size_t filled = 0;
  while (true) {  // the file may be shorter or longer by now
    if (filled == bytes.size()) bytes.resize(filled + 4096);
    const ssize_t got =
        read(file.file.get(), bytes.data() + filled, bytes.size() - filled);
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
