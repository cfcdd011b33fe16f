#include "lib/documents/epub.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "lib/documents/book_binder.h"
#include "lib/documents/encoding.h"
#include "lib/documents/epub_package.h"
#include "lib/documents/error.h"
#include "lib/documents/html.h"
#include "lib/documents/labels.h"
#include "lib/documents/outline.h"
#include "lib/documents/page.h"
#include "lib/documents/zip_archive.h"

namespace tiercel::document {
namespace {

constexpr char kContainer[] = "META-INF/container.xml";
constexpr char kEncryption[] = "META-INF/encryption.xml";
// The largest table of contents of a real book takes some megabytes.
constexpr uint64_t kMaxXmlBytes = 16u << 20;

class EpubReader {
 public:
  EpubReader(std::string name, ZipArchive* archive)
      : name_(std::move(name)), archive_(archive) {}

  Result Read() {
    if (!archive_->Has(kContainer)) {
      return InputError(name_, "unsupported_document",
                        "is a ZIP archive without a book (EPUB) in it");
    }
    if (!ReadPackage() || !ReadPages()) return *std::move(error_);
    Document document = binder_.Take();
    document.title = package_.title;
    document.author = package_.author;
    document.language = package_.language;
    document.warnings.insert(document.warnings.begin(), warnings_.begin(),
                             warnings_.end());
    AddNavigation(&document);
    return document;
  }

 private:
  // Sets the error and returns false.
  bool Fail(std::string code, const std::string& message) {
    error_ = InputError(name_, std::move(code), message);
    return false;
  }

  std::optional<std::string> ReadFile(const std::string& path, uint64_t most) {
    std::variant<std::string, Error> bytes = archive_->Read(path, most);
    if (Error* error = std::get_if<Error>(&bytes)) {
      if (error->code == "invalid_archive") error->code = "invalid_epub";
      error_ = std::move(*error);
      return std::nullopt;
    }
    return std::get<std::string>(std::move(bytes));
  }

  bool ReadPackage() {
    if (archive_->Has(kEncryption)) {
      const auto encryption = ReadFile(kEncryption, kMaxXmlBytes);
      if (!encryption.has_value()) return false;
      if (IsEncrypted(*encryption)) {
        return Fail("encrypted_document",
                    "is encrypted (DRM); its text cannot be read");
      }
    }
    const auto container = ReadFile(kContainer, kMaxXmlBytes);
    if (!container.has_value()) return false;
    const std::optional<std::string> path = PackagePath(*container);
    if (!path.has_value()) {
      return Fail("invalid_epub",
                  std::string(kContainer) + " names no package in the archive");
    }
    const auto opf = ReadFile(*path, kMaxXmlBytes);
    if (!opf.has_value()) return false;
    package_ = ParsePackage(*opf, *path);
    if (package_.outside.has_value()) {
      return Fail("hostile_name", "names a page out of the archive: '" +
                                      ValidUtf8(*package_.outside) + "'");
    }
    if (package_.spine.empty()) {
      return Fail("invalid_epub", "its package has no pages to read");
    }
    return true;
  }

  bool ReadPages() {
    std::unordered_set<std::string> read;
    size_t num_missing = 0;
    std::vector<std::string> not_text;  // their paths
    std::optional<Error> why_not;       // the error of the first
    for (const std::string& path : package_.spine) {
      if (!read.insert(path).second) continue;
      if (!archive_->Has(path)) {
        ++num_missing;
        continue;
      }
      const auto bytes = ReadFile(path, kMaxHtmlBytes);
      if (!bytes.has_value()) return false;
      const std::string page_name = name_ + ": " + path;
      // The page is a picture, or text that is encrypted without being declared
      // so.
      if (auto error = CheckText(page_name, *bytes); error.has_value()) {
        if (not_text.empty()) why_not = std::move(error);
        not_text.push_back(path);
        continue;
      }
      std::vector<std::string> warnings;
      std::variant<HtmlPage, Error> read_page =
          ReadPageBytes(page_name, *bytes, &warnings);
      if (Error* error = std::get_if<Error>(&read_page)) {
        error_ = std::move(*error);
        return false;
      }
      HtmlPage page = std::get<HtmlPage>(std::move(read_page));
      for (const std::string& warning : warnings) {
        warnings_.push_back(std::string(path).append(": ").append(warning));
      }
      if (binder_.num_bytes() + page.text.size() > kMaxFileBytes) {
        error_ =
            TooLarge(name_, "its text", binder_.num_bytes() + page.text.size(),
                     kMaxFileBytes);
        return false;
      }
      binder_.Add(path, std::move(page));
    }
    if (num_missing == read.size()) {
      return Fail("invalid_epub", "none of its pages is in the archive");
    }
    // A book without half of its pages is an error.
    if (2 * not_text.size() >= read.size() - num_missing) {
      error_ = std::move(why_not);
      return false;
    }
    if (num_missing > 0) {
      warnings_.push_back(std::to_string(num_missing) +
                          " pages of the book are not in the archive");
    }
    if (!not_text.empty()) {
      warnings_.push_back(
          std::to_string(not_text.size()) +
          " pages of the book are not text, and were left out: " +
          not_text.front() + (not_text.size() > 1 ? " and others" : ""));
    }
    return true;
  }

  // Returns the navigation if it can be read: a book without one is still a
  // book.
  Navigation ReadNavigation(Document* document) {
    Navigation navigation;
    for (const auto& [path, parse] :
         {std::pair(package_.nav, &ParseNav), {package_.ncx, &ParseNcx}}) {
      if (!path.has_value() || !archive_->Has(*path)) continue;
      const auto bytes = ReadFile(*path, kMaxXmlBytes);
      if (!bytes.has_value()) {
        document->warnings.push_back(error_->message);
        continue;
      }
      Navigation found = parse(*bytes, *path);
      if (navigation.contents.empty()) {
        navigation.contents = std::move(found.contents);
      }
      if (navigation.pages.empty()) navigation.pages = std::move(found.pages);
    }
    return navigation;
  }

  void AddNavigation(Document* document) {
    const Navigation navigation = ReadNavigation(document);
    std::vector<Heading> contents;
    size_t num_lost = 0;
    std::unordered_map<std::string, bool> is_contents;  // by page
    for (const NavEntry& entry : navigation.contents) {
      const std::optional<size_t> begin = binder_.Locate(entry.place);
      if (!begin.has_value()) {
        ++num_lost;
        continue;
      }
      const auto [known, is_new] = is_contents.emplace(entry.place.path, false);
      if (is_new) known->second = binder_.IsContents(entry.place.path);
      if (known->second) continue;
      std::string anchor = entry.place.path;
      if (!entry.place.fragment.empty()) anchor += "#" + entry.place.fragment;
      contents.push_back({entry.level, entry.text, *begin, std::move(anchor)});
    }
    if (num_lost > 0) {
      document->warnings.push_back(
          std::to_string(num_lost) +
          " entries of the table of contents lead to no page of the book");
    }
    // In some books the navigation has a single entry, the book.
    const bool is_listed =
        contents.size() > 1 || binder_.headings().size() <= contents.size();
    if (!is_listed) contents = binder_.headings();
    AddUnlistedIndex(&contents);
    std::stable_sort(
        contents.begin(), contents.end(),
        [](const Heading& a, const Heading& b) { return a.begin < b.begin; });
    // A section that is listed twice is one section.
    contents.erase(std::unique(contents.begin(), contents.end(),
                               [](const Heading& a, const Heading& b) {
                                 return a.begin == b.begin &&
                                        a.level == b.level && a.text == b.text;
                               }),
                   contents.end());
    document->sections = SectionsOf(contents);
    TakeLabels(&document->sections);
    if (!navigation.pages.empty()) AddPages(navigation, document);
  }

  // An index is often not listed; it is added so that FinishOutline leaves it
  // out.
  void AddUnlistedIndex(std::vector<Heading>* contents) const {
    size_t last = 0;
    for (const Heading& entry : *contents) last = std::max(last, entry.begin);
    for (const Heading& heading : binder_.headings()) {
      if (heading.begin <= last || !IsIndexTitle(heading.text)) continue;
      contents->push_back({1, heading.text, heading.begin, heading.anchor});
      return;
    }
  }

  // Headings often have the numbers that the navigation omits.
  void TakeLabels(std::vector<Section>* sections) const {
    auto heading = binder_.headings().begin();
    for (Section& section : *sections) {
      while (heading != binder_.headings().end() &&
             heading->begin < section.begin) {
        ++heading;
      }
      if (heading == binder_.headings().end()) return;
      if (heading->begin != section.begin || !section.label.empty()) continue;
      Label label = SplitLabel(heading->text);
      if (HeadingKey(label.title) == HeadingKey(section.title)) {
        section.label = std::move(label.label);
      }
    }
  }

  void AddPages(const Navigation& navigation, Document* document) const {
    document->pages.clear();
    for (const NavEntry& entry : navigation.pages) {
      const std::optional<size_t> begin = binder_.Locate(entry.place);
      if (begin.has_value()) document->pages.push_back({*begin, entry.text});
    }
    std::stable_sort(
        document->pages.begin(), document->pages.end(),
        [](const Page& a, const Page& b) { return a.begin < b.begin; });
  }

  const std::string name_;
  ZipArchive* const archive_;
  EpubPackage package_;
  BookBinder binder_;
  std::vector<std::string> warnings_;
  std::optional<Error> error_;
};

}  // namespace

Result ReadEpub(const std::string& name, const std::string& bytes) {
  ZipArchive::Opened opened = ZipArchive::Open(name, bytes);
  if (Error* error = std::get_if<Error>(&opened)) {
    if (error->code == "invalid_archive") error->code = "invalid_epub";
    return std::move(*error);
  }
  return EpubReader(name, std::get<std::unique_ptr<ZipArchive>>(opened).get())
      .Read();
}

}  // namespace tiercel::document
