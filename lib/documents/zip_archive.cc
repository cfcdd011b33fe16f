#include "lib/documents/zip_archive.h"

#include <fcntl.h>
#include <unistd.h>
#include <zip.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "lib/documents/encoding.h"
#include "lib/documents/error.h"
#include "lib/documents/href.h"

namespace tiercel::document {
namespace {

// The most bytes that may stand before an archive that a bad copy has moved.
constexpr size_t kMaxBytesBefore = size_t{64} << 10;

// Returns the path that a name means, or nothing if it leads out of the folder
// that the archive would be unpacked in.
std::optional<std::string> PathOf(std::string_view name) {
  if (name.empty() || name.substr(1, 1) == ":" ||
      std::any_of(name.begin(), name.end(), [](char c) {
        return IsControl(c) || c == '\n' || c == '\r';
      })) {
    return std::nullopt;
  }
  return PathFrom("", name);
}

class ZipFile {
 public:
  explicit ZipFile(zip_file_t* file) : file_(file) {}
  ~ZipFile() {
    if (file_ != nullptr) zip_fclose(file_);
  }
  ZipFile(const ZipFile&) = delete;
  ZipFile& operator=(const ZipFile&) = delete;
  zip_file_t* get() const { return file_; }

 private:
  zip_file_t* const file_;
};

}  // namespace

ZipArchive::Opened ZipArchive::Open(const std::string& name,
                                    std::string_view bytes) {
  const auto open = [&name](std::string_view archive) {
    zip_error_t error;
    zip_error_init(&error);
    return OpenSource(
        name,
        zip_source_buffer_create(archive.data(), archive.size(), 0, &error),
        &error);
  };
  Opened opened = open(bytes);
  if (std::holds_alternative<Error>(opened)) {
    // A bad copy has other bytes before the first file.
    const size_t first = bytes.substr(0, kMaxBytesBefore).find("PK\x03\x04");
    if (first != std::string_view::npos && first > 0) {
      Opened behind = open(bytes.substr(first));
      if (!std::holds_alternative<Error>(behind)) return behind;
    }
  }
  return opened;
}

ZipArchive::Opened ZipArchive::Open(const std::string& name,
                                    const FileDescriptor& file) {
  zip_error_t error;
  zip_error_init(&error);
  // The source owns the stream, which has a descriptor of its own.
  const int copy = fcntl(file.get(), F_DUPFD_CLOEXEC, 0);
  FILE* const stream = copy < 0 ? nullptr : fdopen(copy, "rb");
  if (stream == nullptr) {
    const int why = errno;
    if (copy >= 0) close(copy);
    zip_error_fini(&error);
    return Error{Error::Kind::kIo, "io_error",
                 name + ": cannot open: " + std::strerror(why)};
  }
  zip_source_t* const source = zip_source_filep_create(stream, 0, -1, &error);
  if (source == nullptr) std::fclose(stream);
  return OpenSource(name, source, &error);
}

ZipArchive::Opened ZipArchive::OpenSource(const std::string& name,
                                          struct zip_source* source,
                                          struct zip_error* error) {
  zip_t* const opened = source == nullptr
                            ? nullptr
                            : zip_open_from_source(source, ZIP_RDONLY, error);
  if (opened == nullptr) {
    if (source != nullptr) zip_source_free(source);
    const std::string reason = zip_error_strerror(error);
    zip_error_fini(error);
    return InputError(name, "invalid_archive",
                      "is no ZIP archive, or a damaged one (" + reason + ")");
  }
  zip_error_fini(error);
  std::unique_ptr<ZipArchive> archive(new ZipArchive(name, opened));
  const int64_t num_files = zip_get_num_entries(opened, 0);
  if (num_files > kMaxZipFiles) {
    return InputError(name, "too_many_files",
                      "has " + std::to_string(num_files) +
                          " files, reads archives of at most " +
                          std::to_string(kMaxZipFiles));
  }
  for (int64_t i = 0; i < num_files; ++i) {
    const char* const spelled =
        zip_get_name(opened, static_cast<zip_uint64_t>(i), 0);
    const std::optional<std::string> path =
        spelled == nullptr ? std::nullopt : PathOf(spelled);
    if (!path.has_value()) {
      return InputError(name, "hostile_name",
                        "has a file that would lie outside of it: '" +
                            ShownPath(spelled == nullptr ? "" : spelled) + "'");
    }
    archive->Add(*path, i);
  }
  return archive;
}

ZipArchive::~ZipArchive() { zip_discard(archive_); }

std::variant<std::string, Error> ZipArchive::Read(const std::string& path,
                                                  uint64_t most) {
  const int64_t found = NumberOf(path);
  const auto index = static_cast<zip_uint64_t>(found);
  zip_stat_t info;
  if (found < 0 || zip_stat_index(archive_, index, 0, &info) != 0 ||
      (info.valid & ZIP_STAT_SIZE) == 0) {
    return NoSuchFile(path);
  }
  if ((info.valid & ZIP_STAT_ENCRYPTION_METHOD) != 0 &&
      info.encryption_method != ZIP_EM_NONE) {
    return InputError(
        name_, "encrypted_document",
        "is encrypted: '" + ShownPath(path) + "' needs a password");
  }
  if ((info.valid & ZIP_STAT_COMP_METHOD) != 0 &&
      zip_compression_method_supported(info.comp_method, /*compress=*/0) == 0) {
    return InputError(name_, "unsupported_document",
                      "'" + ShownPath(path) +
                          "' in it is packed by a method that is not read (" +
                          std::to_string(info.comp_method) +
                          "); pack it again with Deflate");
  }
  const bool swells = (info.valid & ZIP_STAT_COMP_SIZE) != 0 &&
                      info.size > kMinZipBombBytes &&
                      info.size / kMaxZipRatio > info.comp_size;
  if (swells || info.size > most ||
      info.size > kMaxUnpackedBytes - unpacked_bytes_) {
    return InputError(
        name_, "zip_bomb",
        "'" + ShownPath(path) + "' unpacks to " + std::to_string(info.size) +
            " bytes, reads at most " + std::to_string(most) + " of a file, " +
            std::to_string(kMaxUnpackedBytes) + " of an archive and " +
            std::to_string(kMaxZipRatio) + " for each packed byte");
  }
  const ZipFile file(zip_fopen_index(archive_, index, 0));
  // The size in the directory may be wrong; no more than that is read.
  std::string bytes(info.size, '\0');
  size_t filled = 0;
  while (file.get() != nullptr && filled < bytes.size()) {
    const zip_int64_t got =
        zip_fread(file.get(), bytes.data() + filled, bytes.size() - filled);
    if (got <= 0) break;
    filled += static_cast<size_t>(got);
  }
  char after = 0;
  if (file.get() == nullptr || filled < bytes.size() ||
      zip_fread(file.get(), &after, 1) != 0) {
    return InputError(name_, "invalid_archive",
                      "'" + ShownPath(path) + "' in it is damaged");
  }
  unpacked_bytes_ += bytes.size();
  return bytes;
}

}  // namespace tiercel::document
