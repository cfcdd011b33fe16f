#ifndef TIERCEL_LIB_DOCUMENTS_DOCUMENT_H_
#define TIERCEL_LIB_DOCUMENTS_DOCUMENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tiercel::document {

// A part that a heading begins. It goes on to the next section of its level or
// of one above it; sections of levels below it lie in it.
struct Section {
  int level;  // 1: of the whole document, 2: within one of those, ...
  // "2.1" and "Packages", "Chapter 3" and "Loomings"; either may be empty.
  std::string label;
  std::string title;
  size_t begin;        // in bytes of the text: where its heading begins
  std::string anchor;  // the format's own, "ch-archive.html#s-main"
};

// A page of the printed book, by its number. It extends to the start of the
// next page.
struct Page {
  size_t begin;        // in bytes of the text
  std::string number;  // as it is printed: "xii", "40"
};

// A section that is a chapter of a longer document.
struct NumberedChapter {
  size_t section;                 // its index in this document
  std::optional<int64_t> number;  // in the longer one; absent: title alone
};

// Sections and pages come in the order of the text. What comes before the first
// belongs to none.
struct Document {
  std::string text;      // UTF-8, lines end in '\n'
  std::string title;     // empty where the format has none
  std::string author;    // likewise
  std::string language;  // a BCP 47 tag ("en"), or empty
  std::vector<Section> sections;
  std::vector<Page> pages;
  // The chapters in this document, if it is an excerpt of a longer one
  // (lib/reader); absent: it is whole.
  std::optional<std::vector<NumberedChapter>> chapters;
  std::vector<std::string> warnings;
};

struct Error {
  enum class Kind {
    kInput,  // the file is not a document we read
    kIo,     // the system could not open or read it
  };
  Kind kind;
  std::string code;  // stable, snake_case
  std::string message;
};

using Result = std::variant<Document, Error>;

// The most bytes of a document: 100 novels. HTML has a lower limit, since it
// takes many bytes of memory for each byte while it is parsed.
inline constexpr uint64_t kMaxFileBytes = 64u << 20;
inline constexpr uint64_t kMaxHtmlBytes = 32u << 20;

// Returns not_text for bytes with NULs, which no text has; nothing for others.
// The error's message calls the bytes `name`.
std::optional<Error> CheckNuls(const std::string& name, std::string_view bytes);

// The text of a book as a person would read it, and the tree of its parts.
//
//   folder      an unpacked EPUB, or HTML pages with an index; see folder.h
//   gzip        what is in it, as below, by its name without ".gz"; a PDF or an
//               EPUB in it by its first bytes alone; see gzip.h
//   PDF, EPUB   by the first bytes or by extension, or by their marks behind
//               other bytes, which a bad copy has; see pdf.h, epub.h
//   FB2         by the first bytes, also in a ZIP archive; see fb2.h
//   RTF         by the first bytes; see rtf.h
//   MHTML       by the header of a mail; see mhtml.h
//   HTML        by the first bytes or by extension; see html.h
//   plain text  what nothing else is; see plain_text.h, and encoding.h for its
//               charset
//
// Only folders and regular files are read, and opening one never blocks.
// Errors: not_a_regular_file, document_too_large, not_text (binary),
// html_too_complex, unsupported_document (foreign_format.h), those of
// folder.h, gzip.h, pdf.h, epub.h, fb2.h, rtf.h and mhtml.h; file_not_found,
// io_error. Thread-safe.
Result ReadDocument(const std::string& path);

// Reads a document from bytes in memory. Errors call it `name`, whose extension
// counts.
Result ReadDocumentBytes(const std::string& name, const std::string& bytes);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_DOCUMENT_H_
