#ifndef TIERCEL_LIB_DOCUMENTS_FOLDER_H_
#define TIERCEL_LIB_DOCUMENTS_FOLDER_H_

#include <string>

#include "lib/documents/document.h"

namespace tiercel::document {

// Reads a folder of HTML pages as one book: its index (index.html, or a page of
// contents) and the pages that the text of the index links to, in the order of
// the links: those of its lists first, which also give the headings their
// levels if they nest. If the index is a frame set, the pages in its frames
// take its place. Headings are sections. Pages that are not linked are left
// out, with a warning, and so is what lies out of the folder, by links of the
// file system too.
//
// Errors: not_a_regular_file (no index), too_many_files, zip_bomb (all files),
// document_too_large (all pages), html_too_complex, not_text, io_error; those
// of epub.h for an unpacked EPUB.
Result ReadFolder(const std::string& path);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_FOLDER_H_
