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

// Resolves a link in the file `base` (a path from the book's root). Returns
// nothing if the link leads out of the book, by its scheme or by "..".
std::optional<Place> Resolve(std::string_view base, std::string_view href);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_HREF_H_
