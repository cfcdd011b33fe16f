#ifndef TIERCEL_LIB_DOCUMENTS_AOZORA_H_
#define TIERCEL_LIB_DOCUMENTS_AOZORA_H_

#include <vector>

#include "lib/documents/document.h"
#include "lib/documents/outline.h"

namespace tiercel::document {

// Reads the notation of Aozora Bunko, in which Japanese books are plain texts:
// "｜水車《すいしゃ》" is "水車", with its reading; "［＃...］" is a note of
// those who typed it, which may name a heading, or a character that no charset
// had; "〔Cafe'〕" is "Café". Readings, notes and the explanation of the
// notation are left out, with a warning; the first two lines are title and
// author. Returns the headings that notes name. A text in another notation
// stays as it is.
std::vector<Heading> ReadAozora(Document* document);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_AOZORA_H_
