#ifndef TIERCEL_MODELS_FORMAT_FILE_H_
#define TIERCEL_MODELS_FORMAT_FILE_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "lib/status/error.h"

namespace tiercel {

// The system calls behind an open file. Tests use this seam to make reads
// short, slow or wrong, and to let bytes in memory stand for a file.
class FileSource {
 public:
  // The attributes that distinguish one state of a file from another.
  struct Identity {
    uint64_t size = 0;
    int64_t mtime_ns = 0;
    uint64_t device = 0;
    uint64_t inode = 0;
    bool linked = true;  // some directory still names it
    bool operator==(const Identity&) const = default;
  };

  virtual ~FileSource() = default;
  // Both behave like pread(2) and fstat(2): -1 with errno set.
  virtual ssize_t Pread(std::byte* out, size_t count,
                        uint64_t offset) const = 0;
  virtual int Stat(Identity* identity) const = 0;
};

// A regular file, read by absolute offset. It remembers its identity at opening
// and fails every read after the file was changed. Thread-safe.
class File {
 public:
  // Never blocks: a FIFO, a device or a directory is not_a_regular_file.
  // Errors: file_not_found; io_error where the system refuses otherwise.
  static absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path);
  static absl::StatusOr<std::unique_ptr<File>> Over(
      std::string path, std::unique_ptr<FileSource> source);

  const std::string& path() const { return path_; }
  uint64_t size() const { return identity_.size; }

  // Fills `out` from `offset`. Short reads and interruptions are continued.
  // Errors: io_error; changed_during_load.
  absl::Status Read(uint64_t offset, std::span<std::byte> out) const;

 private:
  File(std::string path, std::unique_ptr<FileSource> source,
       FileSource::Identity identity);
  absl::Status CheckUnchanged() const;

  const std::string path_;
  const std::unique_ptr<FileSource> source_;
  const FileSource::Identity identity_;
};

// Reads a header by `read(file, missing)`, and names the file in errors of what
// it holds. `missing` may be null; otherwise the first error of data that is
// not all there goes to it.
template <typename Header>
absl::StatusOr<Header> ReadHeaderOf(
    const File& file, absl::Status* missing,
    absl::StatusOr<Header> (*read)(const File& file, absl::Status* missing)) {
  absl::Status truncated;
  absl::StatusOr<Header> header =
      read(file, missing != nullptr ? &truncated : nullptr);
  if (!truncated.ok()) missing->Update(Annotate(truncated, file.path()));
  // File's own errors name the path already.
  if (!header.ok() && ClassOf(header.status()) == ErrorClass::kInput) {
    return Annotate(header.status(), file.path());
  }
  return header;
}

// A function by which a format's reader opens the files it names.
using FileOpener =
    std::function<absl::StatusOr<std::unique_ptr<File>>(const std::string&)>;

// Refuses a pointer of Git LFS, the short text that stands in a checkout for a
// large file that was not fetched. Errors: git_lfs_pointer; those of Read.
absl::Status CheckIsNoPointer(const File& file);

}  // namespace tiercel

#endif  // TIERCEL_MODELS_FORMAT_FILE_H_
