// Reads the input as RTF, as it is and as what stands in the one group of a
// file.

#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/documents/rtf.h"
#include "tests/fuzz/document_promises.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tiercel::document;  // NOLINT: all of this is about it
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  CheckPromises(ReadRtf("book", bytes));
  CheckPromises(ReadRtf("book", "{\\rtf1\\ansi" + bytes + "}"));
  return 0;
}
