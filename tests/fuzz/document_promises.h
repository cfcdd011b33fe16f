#ifndef TIERCEL_TESTS_FUZZ_DOCUMENT_PROMISES_H_
#define TIERCEL_TESTS_FUZZ_DOCUMENT_PROMISES_H_

#include <cstdlib>
#include <string>
#include <variant>

#include "lib/documents/document.h"
#include "lib/documents/encoding.h"

namespace tiercel::document {

// Ends the program if a document breaks a promise of document.h.
inline void CheckPromises(const Document& document) {
  for (const std::string* text :
       {&document.text, &document.title, &document.author}) {
    if (!IsUtf8(*text) || text->find('\r') != std::string::npos) std::abort();
  }
  size_t before = 0;
  for (const Section& section : document.sections) {
    if (section.level < 1 || section.begin < before ||
        section.begin >= document.text.size() || !IsUtf8(section.title) ||
        !IsUtf8(section.label)) {
      std::abort();
    }
    before = section.begin;
  }
  before = 0;
  for (const Page& page : document.pages) {
    if (page.begin < before || page.begin >= document.text.size()) std::abort();
    before = page.begin;
  }
}

inline void CheckPromises(const Result& result) {
  if (const Document* document = std::get_if<Document>(&result)) {
    CheckPromises(*document);
  }
}

}  // namespace tiercel::document

#endif  // TIERCEL_TESTS_FUZZ_DOCUMENT_PROMISES_H_
