// Reads the input as an archive, as each of the XML files of an EPUB, and as a
// page of one.

#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/documents/encoding.h"
#include "lib/documents/epub.h"
#include "lib/documents/epub_package.h"
#include "lib/documents/html.h"
#include "lib/documents/xhtml.h"
#include "tests/fuzz/document_promises.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tiercel::document;  // NOLINT: all of this is about it
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  ReadEpub("book", bytes);
  PackagePath(bytes);
  EncryptedPaths(bytes);
  ParsePackage(bytes, "a/b.opf");
  ParseNav(bytes, "a/nav.xhtml");
  ParseNcx(bytes, "a/toc.ncx");
  if (IsUtf8(bytes)) ReadHtmlPage(XhtmlAsHtml(bytes));
  return 0;
}
