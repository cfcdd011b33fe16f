#include "lib/documents/zip_archive.h"

#include <fcntl.h>
#include <unistd.h>
#include <zip.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "lib/documents/encoding.h"
#include "lib/documents/error.h"
#include "lib/documents/file.h"
#include "lib/documents/href.h"
#include "lib/documents/unicode.h"

namespace tiercel::document {
namespace {

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

std::string Shown(std::string_view name) {
  std::string shown = ValidUtf8(name.substr(0, 80));
  ReplaceControls(&shown);
  std::replace(shown.begin(), shown.end(), '\n', ' ');
  return shown;
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
  zip_error_t error;
  zip_error_init(&error);
  return OpenSource(
      name, zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error),
      &error);
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
                            Shown(spelled == nullptr ? "" : spelled) + "'");
    }
    archive->places_.emplace(CaseFolded(*path), i);
    // Some programs pack files by the names that links have for them.
    archive->places_.emplace(CaseFolded(PercentDecoded(*path)), i);
  }
  return archive;
}

ZipArchive::~ZipArchive() { zip_discard(archive_); }

void ZipArchive::FindRoot(const std::string& path) {
  if (Has(path)) return;
  const std::string end = "/" + CaseFolded(path);
  std::optional<std::string> found;
  for (const auto& [key, place] : places_) {
    const bool ends =
        key.size() > end.size() &&
        key.compare(key.size() - end.size(), end.size(), end) == 0;
    if (!ends) continue;
    std::string root = key.substr(0, key.size() - end.size() + 1);
    const auto rank = [](const std::string& folder) {
      return std::pair(std::count(folder.begin(), folder.end(), '/'), folder);
    };
    if (!found.has_value() || rank(root) < rank(*found)) {
      found = std::move(root);
    }
  }
  root_ = found.value_or("");
}

int64_t ZipArchive::NumberOf(const std::string& path) const {
  const auto place = places_.find(root_ + CaseFolded(path));
  return place == places_.end() ? -1 : place->second;
}

std::vector<std::string> ZipArchive::PathsWith(
    const std::string& extension) const {
  std::set<int64_t> found;
  std::vector<std::string> paths;
  for (const auto& [key, place] : places_) {
    if (HasExtension(key, {extension}) && found.insert(place).second) {
      paths.push_back(key.substr(root_.size()));
    }
  }
  return paths;
}

bool ZipArchive::Has(const std::string& path) const {
  return NumberOf(path) >= 0;
}

std::variant<std::string, Error> ZipArchive::Read(const std::string& path,
                                                  uint64_t most) {
  const int64_t found = NumberOf(path);
  const auto index = static_cast<zip_uint64_t>(found);
  zip_stat_t info;
  if (found < 0 || zip_stat_index(archive_, index, 0, &info) != 0 ||
      (info.valid & ZIP_STAT_SIZE) == 0) {
    return InputError(name_, "invalid_archive",
                      "has no file '" + Shown(path) + "'");
  }
  if ((info.valid & ZIP_STAT_ENCRYPTION_METHOD) != 0 &&
      info.encryption_method != ZIP_EM_NONE) {
    return InputError(name_, "encrypted_document",
                      "is encrypted: '" + Shown(path) + "' needs a password");
  }
  const bool swells = (info.valid & ZIP_STAT_COMP_SIZE) != 0 &&
                      info.size > kMinZipBombBytes &&
                      info.size / kMaxZipRatio > info.comp_size;
  if (swells || info.size > most ||
      info.size > kMaxUnpackedBytes - unpacked_bytes_) {
    return InputError(
        name_, "zip_bomb",
        "'" + Shown(path) + "' unpacks to " + std::to_string(info.size) +
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
                      "'" + Shown(path) + "' in it is damaged");
  }
  unpacked_bytes_ += bytes.size();
  return bytes;
}

}  // namespace tiercel::document
