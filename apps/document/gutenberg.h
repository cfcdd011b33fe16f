#ifndef TIERCEL_APPS_DOCUMENT_GUTENBERG_H_
#define TIERCEL_APPS_DOCUMENT_GUTENBERG_H_

#include "apps/document/document.h"

namespace tiercel::document {

// Leaves out of a plain text what Project Gutenberg puts before and behind a
// book, with a warning, and takes title, author and language from there. A
// text without both of its marks stays as it is.
void LeaveOutGutenbergFrame(Document* document);

}  // namespace tiercel::document

#endif  // TIERCEL_APPS_DOCUMENT_GUTENBERG_H_
