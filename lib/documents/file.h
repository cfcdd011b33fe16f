#ifndef TIERCEL_LIB_DOCUMENTS_FILE_H_
#define TIERCEL_LIB_DOCUMENTS_FILE_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "lib/documents/document.h"
#include "lib/documents/file_descriptor.h"

namespace tiercel::document {

// A regular file, and its size when it was opened.
struct OpenedFile {
  FileDescriptor file;
  uint64_t bytes;
};

// Opens a regular file; this never blocks. Errors: not_a_regular_file,
// file_not_found, io_error.
std::variant<std::unique_ptr<OpenedFile>, Error> OpenFile(
    const std::string& path);
// Returns the first bytes of a file, up to `most`; fewer also after an error,
// which the next reading meets again.
std::string FirstBytes(const OpenedFile& file, size_t most);
// Reads a whole file. Errors: document_too_large for more than kMaxFileBytes;
// io_error.
std::variant<std::string, Error> ReadFile(const std::string& path,
                                          const OpenedFile& file);

// Opens a file and reads it. Errors: those of both.
std::variant<std::string, Error> ReadFile(const std::string& path);

// Returns true if a name ends in one of `extensions`, in lower or upper case.
bool HasExtension(const std::string& name,
                  std::initializer_list<std::string_view> extensions);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_FILE_H_
