#ifndef TIERCEL_APPS_DOCUMENT_DOCUMENT_H_
#define TIERCEL_APPS_DOCUMENT_DOCUMENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tiercel::document {

struct Document {
  std::string text;   // UTF-8, lines end in '\n'
  std::string title;  // empty where the format has none
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

// No document is larger than this in bytes: 100 novels. Of HTML each byte costs
// many more while it is parsed.
inline constexpr uint64_t kMaxFileBytes = 64u << 20;
inline constexpr uint64_t kMaxHtmlBytes = 32u << 20;

// not_text for bytes with NULs, which nobody writes into a text; `name` is what
// it calls them.
std::optional<Error> CheckNuls(const std::string& name, std::string_view bytes);

// The text of a file as a person would read it.
//
//   plain text  UTF-8, UTF-16 with a byte order mark, else Windows-1252 with a
//               warning
//   HTML        by extension or by its first bytes; see html.h
//
// Only regular files are read, and opening one never blocks. Errors:
// not_a_regular_file, document_too_large, not_text (binary), html_too_complex,
// unsupported_document (EPUB, PDF, archives), unsupported_charset;
// file_not_found, io_error. Thread-safe.
Result ReadDocument(const std::string& path);

// Reads a document from bytes at hand; errors call it `name`, and
// its extension counts.
Result ReadDocumentBytes(const std::string& name, std::string bytes);

}  // namespace tiercel::document

#endif  // TIERCEL_APPS_DOCUMENT_DOCUMENT_H_
