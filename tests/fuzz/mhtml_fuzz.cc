// Reads the input as a saved page, and as the parts of one.

#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/documents/mhtml.h"
#include "tests/fuzz/document_promises.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tiercel::document;  // NOLINT: all of this is about it
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  IsMhtml("page.mht", bytes);
  CheckPromises(ReadMhtml("page", bytes));
  CheckPromises(ReadMhtml(
      "page", "Content-Type: multipart/related; boundary=b\n\n" + bytes));
  return 0;
}
