#ifndef TIERCEL_LIB_DOCUMENTS_FILE_H_
#define TIERCEL_LIB_DOCUMENTS_FILE_H_

#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

#include "lib/documents/document.h"

namespace tiercel::document {

// Reads a regular file of at most kMaxFileBytes. Opening it never blocks.
// Errors: not_a_regular_file, document_too_large, file_not_found, io_error.
std::variant<std::string, Error> ReadFile(const std::string& path);

// Returns true if a name ends in one of `extensions`, in lower or upper case.
bool HasExtension(const std::string& name,
                  std::initializer_list<std::string_view> extensions);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_FILE_H_
