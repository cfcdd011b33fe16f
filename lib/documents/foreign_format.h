#ifndef TIERCEL_LIB_DOCUMENTS_FOREIGN_FORMAT_H_
#define TIERCEL_LIB_DOCUMENTS_FOREIGN_FORMAT_H_

#include <optional>
#include <string>
#include <string_view>

#include "lib/documents/document.h"

namespace tiercel::document {

// Returns unsupported_document for bytes of a format that is known and not
// read: a word processor's, another reader's, an archive, a picture. The
// message names the format, and a way to convert it. Nothing for others.
std::optional<Error> ForeignFormat(const std::string& name,
                                   std::string_view bytes);

// Returns that error for a ZIP archive without a book, by the files in it.
class BookFiles;
Error ForeignArchive(const std::string& name, const BookFiles& archive);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_FOREIGN_FORMAT_H_
