// Reads the input as a file of unknown kind, and once more as a page. PDF is
// left to pdf_fuzz.cc: no input starts a program. It checks these promises
// beside the sanitizers': text is valid UTF-8, its lines end in line feeds
// alone, and its sections and pages lie in it in their order.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "tests/fuzz/document_promises.h"

namespace {

void Read(const char* name, const std::string& bytes) {
  tiercel::document::CheckPromises(
      tiercel::document::ReadDocumentBytes(name, bytes));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.substr(0, 1024).find("%PDF-") != std::string::npos) return 0;
  Read("page.html", bytes);
  Read("file", bytes);
  return 0;
}
