#include "models/format/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

// Linux reads at most 0x7ffff000 bytes in one call; smaller pieces keep a
// cancelled load from waiting for one.
constexpr size_t kMostBytesPerCall = size_t{64} << 20;
constexpr int kMostRetries = 1000;  // without a byte of progress

absl::Status SystemError(const std::string& path, const char* verb, int error) {
  return IoError(error == ENOENT ? "file_not_found" : "io_error",
                 absl::StrCat(path, ": cannot ", verb, ": ",
                              std::generic_category().message(error)));
}

absl::Status NotARegularFile(const std::string& path) {
  return InputError("not_a_regular_file",
                    absl::StrCat(path, ": need a regular file"));
}

class SystemFile : public FileSource {
 public:
  explicit SystemFile(int fd) : fd_(fd) {}
  ~SystemFile() override { close(fd_); }
  SystemFile(const SystemFile&) = delete;
  SystemFile& operator=(const SystemFile&) = delete;

  ssize_t Pread(std::byte* out, size_t count, uint64_t offset) const override {
    return pread(fd_, out, count, static_cast<off_t>(offset));
  }
  int Stat(Identity* identity) const override {
    struct stat status;
    if (fstat(fd_, &status) != 0) return -1;
    identity->size = static_cast<uint64_t>(status.st_size);
    identity->mtime_ns =
        int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
    identity->device = status.st_dev;
    identity->inode = status.st_ino;
    identity->linked = status.st_nlink > 0;
    return 0;
  }
  bool IsRegular() const {
    struct stat status;
    return fstat(fd_, &status) == 0 && S_ISREG(status.st_mode);
  }

 private:
  const int fd_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<File>> File::Open(const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  const int fd =
      open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) {
    const int error = errno;
    // open(2) fails thus on a socket or on a node without a device.
    if (error == ENXIO || error == ENODEV) return NotARegularFile(path);
    return SystemError(path, "open", error);
  }
  auto source = std::make_unique<SystemFile>(fd);
  if (!source->IsRegular()) return NotARegularFile(path);
  return Over(path, std::move(source));
}

absl::StatusOr<std::unique_ptr<File>> File::Over(
    std::string path, std::unique_ptr<FileSource> source) {
  FileSource::Identity identity;
  if (source->Stat(&identity) != 0) return SystemError(path, "stat", errno);
  return std::unique_ptr<File>(
      new File(std::move(path), std::move(source), identity));
}

File::File(std::string path, std::unique_ptr<FileSource> source,
           FileSource::Identity identity)
    : path_(std::move(path)), source_(std::move(source)), identity_(identity) {}

absl::Status File::Read(uint64_t offset, std::span<std::byte> out) const {
  size_t done = 0;
  int retries = 0;
  while (done < out.size()) {
    const size_t count = std::min(out.size() - done, kMostBytesPerCall);
    const ssize_t got = source_->Pread(out.data() + done, count, offset + done);
    if (got > 0) {
      done += static_cast<size_t>(got);
      retries = 0;
      continue;
    }
    if (got < 0 && (errno == EINTR || errno == EAGAIN) &&
        ++retries < kMostRetries) {
      continue;
    }
    const int error = got < 0 ? errno : 0;
    RETURN_IF_ERROR(CheckUnchanged());
    const std::string verb =
        absl::StrCat("read ", count, " bytes at byte ", offset + done);
    if (error != 0) return SystemError(path_, verb.c_str(), error);
    return IoError("io_error", absl::StrCat(path_, ": cannot ", verb,
                                            ": the file ends there"));
  }
  // This comes after the read, so that it covers every byte just read.
  return CheckUnchanged();
}

absl::Status File::CheckUnchanged() const {
  FileSource::Identity now;
  if (source_->Stat(&now) != 0) return SystemError(path_, "stat", errno);
  if (now == identity_) return absl::OkStatus();
  return IoError(
      "changed_during_load",
      absl::StrCat(path_, ": the file was ",
                   now.size != identity_.size
                       ? absl::StrCat("resized from ", identity_.size, " to ",
                                      now.size, " bytes")
                   : now.linked != identity_.linked
                       ? std::string("removed or replaced")
                       : std::string("written to"),
                   " after it was opened; load it again"));
}

absl::Status CheckIsNoPointer(const File& file) {
  // A pointer has less than 1,024 bytes (git-lfs, docs/spec.md).
  constexpr std::string_view kStart =
      "version https://git-lfs.github.com/spec/";
  if (file.size() < kStart.size() || file.size() >= 1024) {
    return absl::OkStatus();
  }
  std::string start(kStart.size(), '\0');
  RETURN_IF_ERROR(
      file.Read(0, {reinterpret_cast<std::byte*>(start.data()), start.size()}));
  if (start != kStart) return absl::OkStatus();
  return InputError("git_lfs_pointer",
                    absl::StrCat(file.path(),
                                 ": is a Git LFS pointer, not the file that it "
                                 "stands for; fetch that with `git lfs pull`"));
}

}  // namespace tiercel
