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
#include "apps/document/html.h"

namespace tiercel::document {
namespace {

Error InputError(const std::string& name, std::string code,
                 const std::string& message) {
  return {Error::Kind::kInput, std::move(code), name + ": " + message};
}

Error IoError(const std::string& name, const char* what) {
  return {Error::Kind::kIo, errno == ENOENT ? "file_not_found" : "io_error",
          name + ": cannot " + what + ": " + std::strerror(errno)};
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

Error TooLarge(const std::string& name, uint64_t bytes, uint64_t most) {
  return InputError(name, "document_too_large",
                    "got " + std::to_string(bytes) + " bytes, reads at most " +
                        std::to_string(most));
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
  if (size > kMaxFileBytes) return TooLarge(path, size, kMaxFileBytes);
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
    if (filled > kMaxFileBytes) return TooLarge(path, filled, kMaxFileBytes);
  }
  bytes.resize(filled);
  return bytes;
}

std::string Lowercase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
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

// What the bytes say they are, where that is nothing we read.
std::optional<std::string> UnsupportedKind(const std::string& name,
                                           std::string_view bytes) {
  // A PDF may have some bytes before its mark.
  if (bytes.substr(0, 1024).find("%PDF-") != std::string_view::npos ||
      HasExtension(name, {".pdf"})) {
    return "PDF";
  }
  constexpr std::string_view kEpub = "application/epub+zip";
  if (HasExtension(name, {".epub"}) ||
      (bytes.substr(0, 4) == "PK\x03\x04" &&
       bytes.substr(0, 128).find(kEpub) != std::string_view::npos)) {
    return "EPUB";
  }
  if (bytes.substr(0, 4) == "PK\x03\x04") return "a ZIP archive";
  if (bytes.substr(0, 2) == "\x1F\x8B") return "a gzip file";
  return std::nullopt;
}

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

// What bytes and pages can say that text does not: carriage returns, controls.
Document Clean(Document document) {
  size_t replaced = 0;
  for (std::string* text : {&document.text, &document.title}) {
    *text = WithUnixLineEnds(std::move(*text));
    replaced += ReplaceControls(text);
  }
  if (replaced > 0) {
    document.warnings.push_back(std::to_string(replaced) +
                                " control characters became spaces");
  }
  return document;
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

}  // namespace

std::optional<Error> CheckNuls(const std::string& name,
                               std::string_view bytes) {
  if (bytes.find('\0') == std::string_view::npos) return std::nullopt;
  return InputError(name, "not_text",
                    "has NUL bytes: it is binary, or UTF-16 or UTF-32 without "
                    "a byte order mark");
}

Result ReadDocumentBytes(const std::string& name, std::string bytes) {
  if (const auto kind = UnsupportedKind(name, bytes)) {
    return InputError(name, "unsupported_document",
                      "is " + *kind +
                          ", which is not in this version; convert it to text "
                          "or HTML");
  }
  Document document;
  const ByteOrderMark mark = FindByteOrderMark(bytes);
  if (mark.charset == Charset::kUtf32) {
    return InputError(name, "unsupported_charset",
                      "is UTF-32; needs UTF-8, UTF-16 or windows-1252");
  }
  const bool wide =
      mark.charset == Charset::kUtf16Le || mark.charset == Charset::kUtf16Be;
  if (const auto error = CheckNuls(name, bytes); !wide && error.has_value()) {
    return *error;
  }
  if (mark.charset == Charset::kUnknown && !IsUtf8(bytes) &&
      LooksBinary(bytes)) {
    return InputError(name, "not_text", "is binary, not text");
  }
  const std::string_view body = std::string_view(bytes).substr(mark.bytes);
  const bool is_html =
      HasExtension(name, {".html", ".htm", ".xhtml"}) || StartsLikeHtml(body);
  Charset charset = mark.charset;
  if (is_html && charset == Charset::kUnknown) {
    const std::string label = DeclaredCharset(body);
    charset = CharsetOfLabel(label);
    if (charset == Charset::kUnknown && !label.empty() && !IsUtf8(body)) {
      return InputError(
          name, "unsupported_charset",
          "is in charset '" + label + "'; needs UTF-8, UTF-16 or windows-1252");
    }
  }
  std::string text = ToUtf8(body, charset, &document.warnings);
  if (!is_html) {
    document.text = std::move(text);
    return Clean(std::move(document));
  }
  bytes = std::string();
  if (text.size() > kMaxHtmlBytes) {
    return TooLarge(name, text.size(), kMaxHtmlBytes);
  }
  if (!ReadHtml(text, &document)) {
    return InputError(name, "html_too_complex",
                      "its HTML is nested too deeply or takes too much memory "
                      "to parse; convert it to plain text first");
  }
  if (document.text.empty()) {
    document.warnings.push_back("no readable text");
  }
  return Clean(std::move(document));
}

Result ReadDocument(const std::string& path) {
  std::variant<std::string, Error> bytes = ReadFile(path);
  if (Error* error = std::get_if<Error>(&bytes)) return std::move(*error);
  return ReadDocumentBytes(path, std::get<std::string>(std::move(bytes)));
}

}  // namespace tiercel::document
