// Reads the input as an archive, as each of the XML files of an EPUB, and as a
// page of one.

#include <cstddef>
#include <cstdint>
#include <string>

#include "apps/document/epub.h"
#include "apps/document/epub_package.h"
#include "apps/document/html.h"
#include "tests/fuzz/document_promises.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tiercel::document;  // NOLINT: all of this is about it
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  ReadEpub("book", bytes);
  PackagePath(bytes);
  IsEncrypted(bytes);
  ParsePackage(bytes, "a/b.opf");
  ParseNav(bytes, "a/nav.xhtml");
  ParseNcx(bytes, "a/toc.ncx");
  if (IsUtf8(bytes)) ReadHtmlPage(XhtmlAsHtml(bytes));
  return 0;
}
