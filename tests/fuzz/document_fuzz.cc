// Reads the input as a file of unknown kind, and once more as a page. Beside
// the sanitizers' promises two are checked: text is valid UTF-8, and its lines
// end in line feeds alone.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <variant>

#include "apps/document/document.h"
#include "apps/document/encoding.h"

namespace {

using tiercel::document::Document;
using tiercel::document::IsUtf8;
using tiercel::document::ReadDocumentBytes;

void Read(const char* name, const std::string& bytes) {
  auto result = ReadDocumentBytes(name, bytes);
  const Document* document = std::get_if<Document>(&result);
  if (document == nullptr) return;
  if (!IsUtf8(document->text) || !IsUtf8(document->title)) std::abort();
  if (document->text.find('\r') != std::string::npos) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  Read("page.html", bytes);
  Read("file", bytes);
  return 0;
}
