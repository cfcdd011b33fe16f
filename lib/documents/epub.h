#ifndef TIERCEL_LIB_DOCUMENTS_EPUB_H_
#define TIERCEL_LIB_DOCUMENTS_EPUB_H_

#include <string>

#include "lib/documents/document.h"
#include "lib/documents/file_descriptor.h"

namespace tiercel::document {

// Reads EPUB 2 and 3. The text is that of the spine's pages, those out of the
// line (linear="no") last. Sections are those of the navigation (EPUB 3) or of
// the NCX (EPUB 2), if one divides the book far more of that one; they get the
// labels that headings have and they lack. Where there is neither, or it is
// hardly begun, they are those of the headings or of pages that begin as
// chapters do. Pages come from the list of pages or from marks in the text.
// Notes stay where the pages have them. Pages that are not text are left out,
// and said, where they are fewer than half of those that are there.
//
// Errors: those of ZipArchive, with invalid_epub for what is damaged or has no
// package; encrypted_document also for DRM; hostile_name also for pages out of
// the archive; document_too_large; html_too_complex; not_text where half of the
// pages or more are not; unsupported_document for archives that are no EPUB.
Result ReadEpub(const std::string& name, const std::string& bytes);
// Reads of a file what the text needs, so that it may be larger than
// kMaxFileBytes: a book with pictures has little text.
Result ReadEpub(const std::string& name, const FileDescriptor& file);

// Returns true for the folder of an unpacked EPUB, and reads one. What lies out
// of it, by links of the file system too, is no part of it.
bool IsEpubFolder(const std::string& path);
Result ReadEpubFolder(const std::string& path);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_EPUB_H_
