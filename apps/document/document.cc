#include "apps/document/document.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "apps/document/encoding.h"
#include "apps/document/epub.h"
#include "apps/document/error.h"
#include "apps/document/file_descriptor.h"
#include "apps/document/html.h"
#include "apps/document/outline.h"
#include "apps/document/pdf.h"
#include "apps/document/plain_text.h"

namespace tiercel::document {
namespace {

Error IoError(const std::string& name, const char* what) {
  return {Error::Kind::kIo, errno == ENOENT ? "file_not_found" : "io_error",
          name + ": cannot " + what + ": " + std::strerror(errno)};
}

std::variant<std::string, Error> ReadFile(const std::string& path) {
  // Non-blocking: a FIFO without a writer must not hang the open.
  const FileDescriptor file(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (file.get() < 0) return IoError(path, "open");
  struct stat status;
  if (fstat(file.get(), &status) != 0) return IoError(path, "stat");
  if (!S_ISREG(status.st_mode)) {
    return InputError(
        path, "not_a_regular_file",
        S_ISDIR(status.st_mode) ? "is a directory" : "is not a regular file");
  }
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size > kMaxFileBytes)
    return TooLarge(path, "the file", size, kMaxFileBytes);
  std::string bytes;
  bytes.resize(size);
  size_t filled = 0;
  while (true) {  // the file may be shorter or longer by now
    if (filled == bytes.size()) bytes.resize(filled + 4096);
    const ssize_t got =
        read(file.get(), bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return IoError(path, "read");
    if (got == 0) break;
    filled += static_cast<size_t>(got);
    if (filled > kMaxFileBytes)
      return TooLarge(path, "the file", filled, kMaxFileBytes);
  }
  bytes.resize(filled);
  return bytes;
}

bool HasExtension(const std::string& name,
                  std::initializer_list<std::string_view> extensions) {
  const std::string lower = Lowercase(name);
  return std::any_of(extensions.begin(), extensions.end(), [&](auto extension) {
    return lower.size() > extension.size() &&
           std::string_view(lower).substr(lower.size() - extension.size()) ==
               extension;
  });
}

enum class Format { kText, kHtml, kEpub, kPdf, kGzip };

// Whether bytes that are no UTF-8 are no other text either: more control
// characters than any text has.
bool LooksBinary(std::string_view bytes) {
  const auto num_controls =
      std::count_if(bytes.begin(), bytes.end(), [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte < 0x20 && (byte < '\t' || byte > '\r') && byte != 0x1B;
      });
  return static_cast<size_t>(num_controls) > bytes.size() / 100;
}

bool StartsLikeHtml(std::string_view bytes) {
  const std::string start = Lowercase(bytes.substr(0, 1024));
  const size_t first = start.find_first_not_of(" \t\r\n\f");
  if (first == std::string::npos) return false;
  const std::string_view rest = std::string_view(start).substr(first);
  if (rest.substr(0, 14) == "<!doctype html" || rest.substr(0, 5) == "<html") {
    return true;
  }
  return (rest.substr(0, 5) == "<?xml" || rest.substr(0, 4) == "<!--") &&
         rest.find("<html") != std::string_view::npos;
}

Format FormatOf(const std::string& name, std::string_view bytes) {
  // A PDF may have some bytes before its mark.
  if (bytes.substr(0, 1024).find("%PDF-") != std::string_view::npos ||
      HasExtension(name, {".pdf"})) {
    return Format::kPdf;
  }
  if (bytes.substr(0, 4) == "PK\x03\x04" || HasExtension(name, {".epub"})) {
    return Format::kEpub;
  }
  if (bytes.substr(0, 2) == "\x1F\x8B") return Format::kGzip;
  const std::string_view body = bytes.substr(FindByteOrderMark(bytes).bytes);
  return HasExtension(name, {".html", ".htm", ".xhtml"}) || StartsLikeHtml(body)
             ? Format::kHtml
             : Format::kText;
}

// Whether the bytes of a text or a page are that.
std::optional<Error> CheckText(const std::string& name,
                               std::string_view bytes) {
  const std::string_view charset = FindByteOrderMark(bytes).charset;
  const bool is_wide = !charset.empty() && charset != "UTF-8";
  if (is_wide) return std::nullopt;
  if (auto error = CheckNuls(name, bytes); error.has_value()) return error;
  if (charset.empty() && !IsUtf8(bytes) && LooksBinary(bytes)) {
    return InputError(name, "not_text", "is binary, not text");
  }
  return std::nullopt;
}

Result ReadText(const std::string& name, std::string_view bytes) {
  if (const auto error = CheckText(name, bytes)) return *error;
  Document document;
  document.text = WithUnixLineEnds(DecodeText(bytes, &document.warnings));
  const size_t num_controls = ReplaceControls(&document.text);
  WarnOf(num_controls, /*had_frame=*/false, &document);
  ReadPlainText(&document);
  return document;
}

Result ReadPage(const std::string& name, std::string bytes) {
  if (const auto error = CheckText(name, bytes)) return *error;
  Document document;
  std::string html = DecodePage(bytes, &document.warnings);
  bytes = std::string();
  if (html.size() > kMaxHtmlBytes) {
    return TooLarge(name, "the page", html.size(), kMaxHtmlBytes);
  }
  if (html.compare(0, 5, "<?xml") == 0) html = XhtmlAsHtml(html);
  if (!ReadHtml(html, &document)) {
    return InputError(name, "html_too_complex",
                      "its HTML is nested too deeply or takes too much memory "
                      "to parse; convert it to plain text first");
  }
  return document;
}

}  // namespace

std::optional<Error> CheckNuls(const std::string& name,
                               std::string_view bytes) {
  if (bytes.find('\0') == std::string_view::npos) return std::nullopt;
  return InputError(name, "not_text",
                    "has NUL bytes: it is binary, or UTF-16 or UTF-32 without "
                    "a byte order mark");
}

Result ReadDocumentBytes(const std::string& name, std::string bytes) {
  const Format format = FormatOf(name, bytes);
  Result result;
  switch (format) {
    case Format::kText:
      result = ReadText(name, bytes);
      break;
    case Format::kHtml:
      result = ReadPage(name, std::move(bytes));
      break;
    case Format::kEpub:
      result = ReadEpub(name, bytes);
      break;
    case Format::kPdf:
      result = ReadPdf(name, bytes);
      break;
    case Format::kGzip:
      result = InputError(name, "unsupported_document",
                          "is a gzip file; unpack it first");
      break;
  }
  if (Document* document = std::get_if<Document>(&result)) {
    FinishOutline(document);
    if (document->text.empty() && format != Format::kText) {
      document->warnings.push_back("no readable text");
    }
  }
  return result;
}

Result ReadDocument(const std::string& path) {
  std::variant<std::string, Error> bytes = ReadFile(path);
  if (Error* error = std::get_if<Error>(&bytes)) return std::move(*error);
  return ReadDocumentBytes(path, std::get<std::string>(std::move(bytes)));
}

}  // namespace tiercel::document
