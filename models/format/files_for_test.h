#ifndef TIERCEL_MODELS_FORMAT_FILES_FOR_TEST_H_
#define TIERCEL_MODELS_FORMAT_FILES_FOR_TEST_H_

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "lib/status/error.h"
#include "models/format/file.h"

namespace tiercel {

// A file source over bytes in memory.
class MemorySource : public FileSource {
 public:
  explicit MemorySource(std::string bytes) : bytes_(std::move(bytes)) {}

  ssize_t Pread(std::byte* out, size_t count, uint64_t offset) const override {
    if (offset >= bytes_.size()) return 0;
    count = std::min<uint64_t>(count, bytes_.size() - offset);
    std::memcpy(out, bytes_.data() + offset, count);
    return static_cast<ssize_t>(count);
  }
  int Stat(Identity* identity) const override {
    *identity = Identity();
    identity->size = bytes_.size();
    return 0;
  }

 private:
  const std::string bytes_;
};

inline std::unique_ptr<File> MemoryFile(std::string bytes,
                                        const std::string& path = "memory") {
  return *File::Over(path, std::make_unique<MemorySource>(std::move(bytes)));
}

// Opens files from a map of path to content.
inline FileOpener MemoryOpener(std::map<std::string, std::string> files) {
  return [files = std::move(files)](
             const std::string& path) -> absl::StatusOr<std::unique_ptr<File>> {
    const auto it = files.find(path);
    if (it == files.end()) {
      return IoError("file_not_found", path + ": cannot open: not there");
    }
    return MemoryFile(it->second, path);
  };
}

}  // namespace tiercel

#endif  // TIERCEL_MODELS_FORMAT_FILES_FOR_TEST_H_
