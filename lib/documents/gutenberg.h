#ifndef TIERCEL_LIB_DOCUMENTS_GUTENBERG_H_
#define TIERCEL_LIB_DOCUMENTS_GUTENBERG_H_

#include <string_view>

#include "lib/documents/document.h"

namespace tiercel::document {

// Removes the text that Project Gutenberg puts before and behind a book, since
// 1993 with marks in lines of their own, with a warning, and takes title,
// author and language from it. A text without both marks stays as it is.
void LeaveOutGutenbergFrame(Document* document);

// Takes title, author and language from the fields of a header ("Title: ..."),
// each on its line. What it does not name stays as it is.
void ReadGutenbergFields(std::string_view header, Document* document);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_GUTENBERG_H_
