#ifndef TIERCEL_LIB_DOCUMENTS_GZIP_H_
#define TIERCEL_LIB_DOCUMENTS_GZIP_H_

#include <string>
#include <string_view>
#include <variant>

#include "lib/documents/document.h"

namespace tiercel::document {

bool StartsLikeGzip(std::string_view bytes);

// Unpacks a gzip file, of several members too (RFC 1952). Errors:
// invalid_archive (damaged or cut), zip_bomb (more than kMaxFileBytes).
std::variant<std::string, Error> UnpackGzip(const std::string& name,
                                            std::string_view bytes);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_GZIP_H_
