#ifndef TIERCEL_APPS_DOCUMENT_EPUB_PACKAGE_H_
#define TIERCEL_APPS_DOCUMENT_EPUB_PACKAGE_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/document/href.h"

namespace tiercel::document {

// The XML files of an EPUB, read by pugixml: it expands no entities and opens
// no other files. What is not well-formed is read as far as it goes.

// What META-INF/container.xml names: the path of the package. Nothing where it
// names none within the book.
std::optional<std::string> PackagePath(std::string_view container);

// Whether META-INF/encryption.xml says that more than fonts is encrypted.
bool IsEncrypted(std::string_view encryption);

// What a package (OPF) says. Paths are from the book's root.
struct EpubPackage {
  std::string title;
  std::string author;  // all of them, ", " between
  std::string language;
  std::vector<std::string> spine;  // its pages, those out of the line last
  std::optional<std::string> nav;  // EPUB 3's navigation
  std::optional<std::string> ncx;  // EPUB 2's
  std::optional<std::string>
      outside;  // a page's link that leads out of the book
};
// `path` is the package's own.
EpubPackage ParsePackage(std::string_view opf, const std::string& path);

// An entry of a table of contents, or of the list of printed pages.
struct NavEntry {
  int level;  // 1, and one more for each list it lies in
  std::string text;
  Place place;
};
struct Navigation {
  std::vector<NavEntry> contents;
  std::vector<NavEntry> pages;
};
// `path` is the file's own. Links that lead out of the book are left out.
Navigation ParseNav(std::string_view xhtml, const std::string& path);
Navigation ParseNcx(std::string_view ncx, const std::string& path);

}  // namespace tiercel::document

#endif  // TIERCEL_APPS_DOCUMENT_EPUB_PACKAGE_H_
