#ifndef TIERCEL_LIB_DOCUMENTS_HREF_H_
#define TIERCEL_LIB_DOCUMENTS_HREF_H_

#include <optional>
#include <string>
#include <string_view>

namespace tiercel::document {

// A place in one of the files of a book.
struct Place {
  std::string path;      // from the book's root, without "." and ".."
  std::string fragment;  // behind '#'; may be empty
};

// Resolves a link in the file `base` (a path from the book's root). As in
// browsers '\\' is '/', and a link that begins with it starts from the root.
// Returns nothing if the link leads out of the book, by its scheme, by "//" or
// by "..".
std::optional<Place> Resolve(std::string_view base, std::string_view href);

// Resolves a path in the file `base`, as a link that is not percent-encoded.
// Returns nothing if it leads out of the book.
std::optional<std::string> PathFrom(std::string_view base,
                                    std::string_view path);

// Replaces "%20" and its like. "%00" stays as it is written, since a zero byte
// would end the name elsewhere.
std::string PercentDecoded(std::string_view text);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_HREF_H_
