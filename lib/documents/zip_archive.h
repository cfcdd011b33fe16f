#ifndef TIERCEL_LIB_DOCUMENTS_ZIP_ARCHIVE_H_
#define TIERCEL_LIB_DOCUMENTS_ZIP_ARCHIVE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>

#include "lib/documents/document.h"

struct zip;

namespace tiercel::document {

// Most books have some hundred files; those with pictures have some thousand.
inline constexpr int64_t kMaxZipFiles = 20'000;
// Prose is packed to a third of its size, the most repetitive markup to a
// fiftieth; deflate can reach a thousandth. Small files may be packed at any
// ratio.
inline constexpr uint64_t kMaxZipRatio = 200;
inline constexpr uint64_t kMinZipBombBytes = 1u << 20;
// The most bytes that are unpacked of one archive, all files together.
inline constexpr uint64_t kMaxUnpackedBytes = 256u << 20;

// A ZIP archive in memory, read by libzip within the limits above. Nothing is
// ever written to a disk.
//
// Errors: invalid_archive (damaged), encrypted_document (a file needs a
// password), zip_bomb (a limit on bytes), too_many_files, hostile_name (a file
// that would lie outside the folder it were unpacked in).
class ZipArchive {
 public:
  using Opened = std::variant<std::unique_ptr<ZipArchive>, Error>;

  // `bytes` outlive the archive; errors call it `name`.
  static Opened Open(const std::string& name, std::string_view bytes);
  ~ZipArchive();
  ZipArchive(const ZipArchive&) = delete;
  ZipArchive& operator=(const ZipArchive&) = delete;

  bool Has(const std::string& path) const;
  // Reads a file that exists. More than `most` bytes are a zip_bomb.
  std::variant<std::string, Error> Read(const std::string& path, uint64_t most);

 private:
  ZipArchive(std::string name, struct zip* archive)
      : name_(std::move(name)), archive_(archive) {}
  int64_t Find(const std::string& path) const;

  const std::string name_;
  struct zip* const archive_;
  // Indices by path in lower case: some books were made where case does not
  // matter.
  std::unordered_map<std::string, int64_t> places_;
  uint64_t unpacked_bytes_ = 0;
};

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_ZIP_ARCHIVE_H_
