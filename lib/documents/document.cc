#include "lib/documents/document.h"

#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "lib/documents/encoding.h"
#include "lib/documents/epub.h"
#include "lib/documents/error.h"
#include "lib/documents/fb2.h"
#include "lib/documents/file.h"
#include "lib/documents/folder.h"
#include "lib/documents/foreign_format.h"
#include "lib/documents/gzip.h"
#include "lib/documents/html.h"
#include "lib/documents/mhtml.h"
#include "lib/documents/outline.h"
#include "lib/documents/page.h"
#include "lib/documents/pdf.h"
#include "lib/documents/rtf.h"

namespace tiercel::document {
namespace {

enum class Format { kText, kHtml, kMhtml, kEpub, kFb2, kPdf, kRtf };

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

// Returns true for a piece of a page, whose paragraphs are elements. Texts with
// some elements (Markdown) have others, and do not end in one.
bool IsHtmlPiece(std::string_view bytes) {
  const size_t begin = bytes.find_first_not_of(" \t\r\n\f");
  const size_t end = bytes.find_last_not_of(" \t\r\n\f");
  if (begin == std::string_view::npos || bytes[begin] != '<' ||
      bytes[end] != '>') {
    return false;
  }
  constexpr size_t kSeen = size_t{64} << 10;
  const std::string seen = Lowercase(bytes.substr(begin, kSeen));
  const auto is_block = [&](size_t at) {
    const size_t name_end = seen.find_first_of(" \t\r\n/>", at + 1);
    const std::string name = seen.substr(at + 1, name_end - at - 1);
    for (const char* block :
         {"body",   "head",       "title", "meta", "h1",  "h2",      "h3",
          "h4",     "h5",         "h6",    "p",    "div", "section", "article",
          "center", "blockquote", "table", "ul",   "ol",  "pre",     "hr"}) {
      if (name == block) return true;
    }
    return false;
  };
  if (!is_block(0)) return false;
  size_t num_elements = 0;
  for (size_t at = 0; at != std::string::npos; at = seen.find('<', at + 1)) {
    if (is_block(at)) ++num_elements;
  }
  size_t num_paragraphs = 1;
  for (size_t at = seen.find("\n\n"); at != std::string::npos;
       at = seen.find("\n\n", at + 2)) {
    ++num_paragraphs;
  }
  return num_elements >= num_paragraphs;
}

// A PDF may have some bytes before its mark. A text may mention the mark, but
// has no mark of the end.
bool StartsLikePdf(std::string_view bytes) {
  const size_t mark = bytes.substr(0, 1024).find("%PDF-");
  if (mark == std::string_view::npos) return false;
  return mark <= bytes.find_first_not_of(" \t\r\n\f") ||
         bytes.substr(bytes.size() - std::min<size_t>(bytes.size(), 1024))
                 .find("%%EOF") != std::string_view::npos;
}

bool StartsLikeZip(std::string_view bytes) {
  return bytes.substr(0, 4) == "PK\x03\x04";
}

// Returns true if other bytes, of a bad copy, may stand before an archive: it
// has the mark of the first file, and that of the end.
bool HasZipWithin(std::string_view bytes) {
  constexpr size_t kMost = size_t{64} << 10;  // before, or as a comment behind
  return bytes.substr(0, kMost).find("PK\x03\x04") != std::string_view::npos &&
         bytes.substr(bytes.size() - std::min(bytes.size(), kMost))
                 .find("PK\x05\x06") != std::string_view::npos;
}

// A file that was packed is whole, so that it is no PDF and no EPUB without
// their marks, whatever its name says; so is one without bytes.
Format FormatOf(const std::string& name, std::string_view bytes,
                bool was_packed) {
  if (bytes.empty()) return Format::kText;
  const std::string_view body = bytes.substr(FindByteOrderMark(bytes).bytes);
  if (StartsLikePdf(body) || (!was_packed && HasExtension(name, {".pdf"}))) {
    return Format::kPdf;
  }
  if (StartsLikeZip(bytes) || (!was_packed && HasExtension(name, {".epub"}))) {
    return Format::kEpub;
  }
  if (StartsLikeFb2(bytes)) return Format::kFb2;
  if (StartsLikeRtf(body)) return Format::kRtf;
  if (IsMhtml(name, body)) return Format::kMhtml;
  const bool is_html = HasExtension(name, {".html", ".htm", ".xhtml"}) ||
                       StartsLikeHtml(body) || IsHtmlPiece(body);
  if (is_html) return Format::kHtml;
  return HasZipWithin(bytes) ? Format::kEpub : Format::kText;
}

Result ReadPage(const std::string& name, const std::string& bytes) {
  if (const auto error = CheckText(name, bytes)) return *error;
  Document document;
  std::variant<HtmlPage, Error> page =
      ReadPageBytes(name, bytes, &document.warnings);
  if (Error* error = std::get_if<Error>(&page)) return std::move(*error);
  FillFrom(std::get<HtmlPage>(std::move(page)), &document);
  return document;
}

Result Finished(Result result, Format format) {
  if (Document* document = std::get_if<Document>(&result)) {
    FinishOutline(document);
    if (document->text.empty() && format != Format::kText) {
      document->warnings.emplace_back("no readable text");
    }
  }
  return result;
}

Result ReadBytes(const std::string& name, const std::string& bytes,
                 bool was_packed) {
  if (auto foreign = ForeignFormat(name, bytes); foreign.has_value()) {
    return *std::move(foreign);
  }
  const Format format = FormatOf(name, bytes, was_packed);
  Result result;
  switch (format) {
    case Format::kText:
      result = ReadTextBytes(name, bytes);
      break;
    case Format::kHtml:
      result = ReadPage(name, bytes);
      break;
    case Format::kMhtml:
      result = ReadMhtml(name, bytes);
      break;
    case Format::kEpub:
      result = ReadEpub(name, bytes);
      break;
    case Format::kPdf:
      result = ReadPdf(name, bytes);
      break;
    case Format::kFb2:
      result = ReadFb2(name, bytes);
      break;
    case Format::kRtf:
      result = ReadRtf(name, bytes);
      break;
  }
  return Finished(std::move(result), format);
}

}  // namespace

Result ReadDocumentBytes(const std::string& name, const std::string& bytes) {
  if (!StartsLikeGzip(bytes)) return ReadBytes(name, bytes, false);
  std::variant<std::string, Error> unpacked = UnpackGzip(name, bytes);
  if (Error* error = std::get_if<Error>(&unpacked)) return std::move(*error);
  const bool says_so = HasExtension(name, {".gz"});
  return ReadBytes(says_so ? name.substr(0, name.size() - 3) : name,
                   std::get<std::string>(unpacked), /*was_packed=*/true);
}

Result ReadDocument(const std::string& path) {
  std::error_code unknown;  // then opening it says why
  if (std::filesystem::is_directory(path, unknown)) {
    Result result =
        IsEpubFolder(path) ? ReadEpubFolder(path) : ReadFolder(path);
    if (Document* document = std::get_if<Document>(&result)) {
      FinishOutline(document);
    }
    return result;
  }
  auto opened = OpenFile(path);
  if (Error* error = std::get_if<Error>(&opened)) return std::move(*error);
  const OpenedFile& file = *std::get<std::unique_ptr<OpenedFile>>(opened);
  if (StartsLikeZip(FirstBytes(file, 4))) {
    return Finished(ReadEpub(path, file.file), Format::kEpub);
  }
  std::variant<std::string, Error> bytes = ReadFile(path, file);
  if (Error* error = std::get_if<Error>(&bytes)) return std::move(*error);
  return ReadDocumentBytes(path, std::get<std::string>(bytes));
}

}  // namespace tiercel::document
