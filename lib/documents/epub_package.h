#ifndef TIERCEL_LIB_DOCUMENTS_EPUB_PACKAGE_H_
#define TIERCEL_LIB_DOCUMENTS_EPUB_PACKAGE_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/documents/href.h"

namespace tiercel::document {

// The XML files of an EPUB, in UTF-8. Those that are not well-formed are read
// as far as they make sense.

// Returns the path of the package, as META-INF/container.xml names it; nothing
// if it names none within the book.
std::optional<std::string> PackagePath(std::string_view container);

// Returns the paths of the files, fonts apart, that META-INF/encryption.xml
// lists as encrypted.
std::vector<std::string> EncryptedPaths(std::string_view encryption);

// The contents of a package (OPF). Paths are from the book's root.
struct EpubPackage {
  std::string title;
  // All authors, joined by ", "; of a book that names none, who else made it.
  std::string author;
  std::string language;
  std::vector<std::string>
      spine;  // its pages; those outside the linear order come last
  std::optional<std::string> nav;  // EPUB 3's table of contents
  std::optional<std::string> ncx;  // EPUB 2's table of contents
  std::optional<std::string>
      outside;  // a page's link that leads out of the book
};
// `path` is that of the package itself.
EpubPackage ParsePackage(std::string_view opf, const std::string& path);

// An entry of a table of contents, or of the list of printed pages.
struct NavEntry {
  int level;  // 1 plus the number of lists around it
  std::string text;
  Place place;
};
struct Navigation {
  std::vector<NavEntry> contents;
  std::vector<NavEntry> pages;
};
// `path` is that of the file itself. Links that lead out of the book are left
// out.
Navigation ParseNav(std::string_view xhtml, const std::string& path);
Navigation ParseNcx(std::string_view ncx, const std::string& path);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_EPUB_PACKAGE_H_
