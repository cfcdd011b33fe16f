#ifndef TIERCEL_LIB_DOCUMENTS_ZIP_ARCHIVE_H_
#define TIERCEL_LIB_DOCUMENTS_ZIP_ARCHIVE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "lib/documents/book_files.h"
#include "lib/documents/document.h"
#include "lib/documents/file_descriptor.h"

struct zip;
struct zip_error;
struct zip_source;

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

// A ZIP archive, read by libzip within the limits above. Nothing is ever
// written to a disk.
//
// Errors: invalid_archive (damaged), encrypted_document (a file needs a
// password), zip_bomb (a limit on bytes), too_many_files, hostile_name (a file
// that would lie outside the folder it were unpacked in), unsupported_document
// (a file is packed by a method that is not read).
class ZipArchive : public BookFiles {
 public:
  using Opened = std::variant<std::unique_ptr<ZipArchive>, Error>;

  // Errors call the archive `name`. `bytes` outlive it; of a file, only what is
  // needed is read.
  static Opened Open(const std::string& name, std::string_view bytes);
  static Opened Open(const std::string& name, const FileDescriptor& file);
  ~ZipArchive() override;

  std::variant<std::string, Error> Read(const std::string& path,
                                        uint64_t most) override;

 private:
  ZipArchive(std::string name, struct zip* archive)
      : BookFiles(std::move(name), "archive"), archive_(archive) {}
  static Opened OpenSource(const std::string& name, struct zip_source* source,
                           struct zip_error* error);
  struct zip* const archive_;
  uint64_t unpacked_bytes_ = 0;
};

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_ZIP_ARCHIVE_H_
