#include "lib/documents/mhtml.h"

#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "lib/documents/book_binder.h"
#include "lib/documents/error.h"
#include "lib/documents/file.h"
#include "lib/documents/html.h"
#include "lib/documents/mime.h"
#include "lib/documents/outline.h"
#include "lib/documents/page.h"
#include "lib/documents/undeclared_headings.h"

namespace tiercel::document {
namespace {

constexpr int kMaxNesting = 10;       // parts within parts
constexpr size_t kMaxParts = 20'000;  // as many as an archive may have files
constexpr std::string_view kMultipart = "multipart/";

bool IsMultipart(const MimePart& part) {
  return part.type.rfind(kMultipart, 0) == 0;
}

bool IsPage(const MimePart& part) {
  return part.type == "text/html" || part.type == "application/xhtml+xml";
}

bool IsPlain(const MimePart& part) { return part.type == "text/plain"; }

class MhtmlReader {
 public:
  MhtmlReader(const std::string& name, std::string_view bytes) : name_(name) {
    if (auto mail = ParseMime(bytes); mail.has_value()) {
      Add(*std::move(mail), /*depth=*/0);
    }
    for (const MimePart& part : parts_) {
      if (!IsPage(part)) continue;
      if (!part.id.empty()) by_link_.emplace("cid:" + part.id, &part);
      if (!part.location.empty()) by_link_.emplace(part.location, &part);
    }
  }

  Result Read() {
    const MimePart* const first = FirstShown();
    if (first == nullptr) return ReadPlainPart();
    std::vector<const MimePart*> pages = {first};
    std::set<const MimePart*> read = {first};
    HtmlPage shown;
    for (size_t i = 0; i < pages.size(); ++i) {
      std::variant<HtmlPage, Error> result = ReadPart(*pages[i]);
      if (Error* error = std::get_if<Error>(&result)) return std::move(*error);
      HtmlPage& page = std::get<HtmlPage>(result);
      for (const std::string& frame : page.frames) {
        const auto part = by_link_.find(frame);
        if (part != by_link_.end() && read.insert(part->second).second) {
          pages.push_back(part->second);
        }
      }
      if (i == 0) {
        shown = page;
        if (pages.size() == 1) break;
      }
      if (binder_.num_bytes() + page.text.size() > kMaxFileBytes) {
        return TooLarge(name_, "its text",
                        binder_.num_bytes() + page.text.size(), kMaxFileBytes);
      }
      binder_.Add(pages[i]->location, std::move(page));
    }
    Document document;
    if (pages.size() == 1) {
      FillFrom(std::move(shown), &document);
    } else {
      std::vector<Heading> headings = binder_.headings();
      document = binder_.Take();
      document.title = shown.title;
      document.author = shown.author;
      document.language = shown.language;
      document.sections =
          SectionsOf(WithUndeclared(document.text, std::move(headings)));
    }
    document.warnings.insert(document.warnings.begin(), warnings_.begin(),
                             warnings_.end());
    return document;
  }

 private:
  // Adds a part, and what is in it in the order of the mail.
  void Add(MimePart part, int depth) {
    const bool has_parts = IsMultipart(part) && depth < kMaxNesting;
    std::vector<MimePart> inner;
    if (has_parts) inner = PartsOf(part, kMaxParts - parts_.size());
    if (start_.empty()) start_ = part.start;
    if (!has_parts) parts_.push_back(std::move(part));
    for (MimePart& next : inner) {
      if (parts_.size() < kMaxParts) Add(std::move(next), depth + 1);
    }
  }

  // Returns the page that the mail names, else the first; null: there is none.
  const MimePart* FirstShown() const {
    const MimePart* first = nullptr;
    for (const MimePart& part : parts_) {
      if (!IsPage(part)) continue;
      if (!start_.empty() && part.id == start_) return &part;
      if (first == nullptr) first = &part;
    }
    return first;
  }

  // Reads a mail that has no page.
  Result ReadPlainPart() const {
    for (const MimePart& part : parts_) {
      if (IsPlain(part)) {
        return ReadTextBytes(name_, BodyOf(part), part.charset);
      }
    }
    return InputError(name_, "invalid_mhtml",
                      "is a mail or a saved web page (MHTML) without a page "
                      "(HTML) or a text in it");
  }

  std::variant<HtmlPage, Error> ReadPart(const MimePart& part) {
    const std::string bytes = BodyOf(part);
    if (auto error = CheckText(name_, bytes); error.has_value()) {
      return *std::move(error);
    }
    return ReadPageBytes(name_, bytes, &warnings_, part.charset);
  }

  const std::string name_;
  std::vector<MimePart> parts_;  // without those that have parts
  std::string start_;
  std::unordered_map<std::string, const MimePart*> by_link_;
  BookBinder binder_;
  std::vector<std::string> warnings_;
};

}  // namespace

bool IsMhtml(const std::string& name, std::string_view bytes) {
  const std::optional<MimePart> mail = ParseMime(bytes);
  if (!mail.has_value() || mail->type.empty()) return false;
  const bool is_said = HasExtension(name, {".mht", ".mhtml", ".eml"}) ||
                       mail->has_version || !mail->encoding.empty();
  return is_said && (IsPage(*mail) || IsPlain(*mail) ||
                     (IsMultipart(*mail) && !mail->boundary.empty()));
}

Result ReadMhtml(const std::string& name, std::string_view bytes) {
  return MhtmlReader(name, bytes).Read();
}

}  // namespace tiercel::document
