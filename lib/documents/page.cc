#include "lib/documents/page.h"

#include <algorithm>
#include <utility>

#include "lib/documents/encoding.h"
#include "lib/documents/error.h"
#include "lib/documents/plain_text.h"
#include "lib/documents/xhtml.h"

namespace tiercel::document {
namespace {

// Returns true if bytes that are not UTF-8 are not text in another charset
// either: they have more control characters than any text has.
bool LooksBinary(std::string_view bytes) {
  const auto num_controls =
      std::count_if(bytes.begin(), bytes.end(), [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte < 0x20 && (byte < '\t' || byte > '\r') && byte != 0x1B;
      });
  return static_cast<size_t>(num_controls) > bytes.size() / 100;
}

}  // namespace

std::optional<Error> CheckNuls(const std::string& name,
                               std::string_view bytes) {
  if (bytes.find('\0') == std::string_view::npos) return std::nullopt;
  return InputError(name, "not_text",
                    "has NUL bytes: it is binary, or UTF-16 or UTF-32 without "
                    "a byte order mark");
}

std::optional<Error> CheckText(const std::string& name,
                               std::string_view bytes) {
  const std::string_view charset = FindByteOrderMark(bytes).charset;
  const bool is_wide = !charset.empty() && charset != "UTF-8";
  if (is_wide || !GuessUtf16(bytes).empty()) return std::nullopt;
  if (auto error = CheckNuls(name, bytes); error.has_value()) return error;
  if (charset.empty() && !IsUtf8(bytes) && LooksBinary(bytes)) {
    return InputError(name, "not_text", "is binary, not text");
  }
  return std::nullopt;
}

std::variant<HtmlPage, Error> ReadPageBytes(const std::string& name,
                                            std::string_view bytes,
                                            std::vector<std::string>* warnings,
                                            std::string_view charset) {
  std::string html = DecodePage(bytes, warnings, charset);
  if (html.size() > kMaxHtmlBytes) {
    return TooLarge(name, "the page", html.size(), kMaxHtmlBytes);
  }
  if (html.compare(0, 5, "<?xml") == 0 ||
      html.find("http://www.w3.org/1999/xhtml") != std::string::npos) {
    html = XhtmlAsHtml(html);
  } else {
    html = WithoutDeclarations(html);
  }
  std::optional<HtmlPage> page = ReadHtmlPage(html);
  if (!page.has_value()) {
    return InputError(name, "html_too_complex",
                      "its HTML is nested too deeply or takes too much memory "
                      "to parse; convert it to plain text first");
  }
  return *std::move(page);
}

Result ReadTextBytes(const std::string& name, std::string_view bytes,
                     std::string_view charset) {
  if (const auto error = CheckText(name, bytes)) return *error;
  Document document;
  document.text = WithUnixLineEnds(
      charset.empty() ? DecodeText(bytes, &document.warnings)
                      : DecodePage(bytes, &document.warnings, charset));
  const size_t num_controls = ReplaceControls(&document.text);
  WarnOf(num_controls, /*had_frame=*/false, &document);
  ReadPlainText(&document);
  return document;
}

}  // namespace tiercel::document
