#include "lib/documents/epub.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "lib/documents/book_binder.h"
#include "lib/documents/encoding.h"
#include "lib/documents/epub_package.h"
#include "lib/documents/error.h"
#include "lib/documents/fb2.h"
#include "lib/documents/folder_files.h"
#include "lib/documents/foreign_format.h"
#include "lib/documents/gutenberg.h"
#include "lib/documents/html.h"
#include "lib/documents/labels.h"
#include "lib/documents/outline.h"
#include "lib/documents/page.h"
#include "lib/documents/undeclared_headings.h"
#include "lib/documents/zip_archive.h"

namespace tiercel::document {
namespace {

constexpr char kContainer[] = "META-INF/container.xml";
constexpr char kEncryption[] = "META-INF/encryption.xml";
// The largest table of contents of a real book takes some megabytes.
constexpr uint64_t kMaxXmlBytes = 16u << 20;
// A table of contents with fewer entries may be none.
constexpr size_t kFewEntries = 4;

class EpubReader {
 public:
  EpubReader(std::string name, BookFiles* files)
      : name_(std::move(name)), files_(files) {}

  Result Read() {
    files_->FindRoot(kContainer);
    if (!files_->Has(kContainer)) return ReadPacked();
    if (!ReadPackage() || !ReadPages()) return *std::move(error_);
    Document document = binder_.Take();
    document.title = package_.title;
    document.author = package_.author;
    document.language = package_.language;
    document.warnings.insert(document.warnings.begin(), warnings_.begin(),
                             warnings_.end());
    AddNavigation(&document);
    LeaveOutGutenbergFrame(&document);
    return document;
  }

 private:
  // An archive without a package may contain a book of one file.
  Result ReadPacked() {
    const std::vector<std::string> books = files_->PathsWith(".fb2");
    if (books.empty()) return ForeignArchive(name_, *files_);
    if (books.size() > 1) {
      return InputError(name_, "unsupported_document",
                        "is a ZIP archive of " + std::to_string(books.size()) +
                            " books (FB2); unpack it and give one");
    }
    const auto bytes = ReadFile(books[0], kMaxFileBytes);
    if (!bytes.has_value()) return *std::move(error_);
    return ReadFb2(name_, *bytes);
  }

  // Sets the error and returns false.
  bool Fail(std::string code, const std::string& message) {
    error_ = InputError(name_, std::move(code), message);
    return false;
  }

  std::optional<std::string> ReadFile(const std::string& path, uint64_t most) {
    std::variant<std::string, Error> bytes = files_->Read(path, most);
    if (Error* error = std::get_if<Error>(&bytes)) {
      if (error->code == "invalid_archive") error->code = "invalid_epub";
      error_ = std::move(*error);
      return std::nullopt;
    }
    return std::get<std::string>(std::move(bytes));
  }

  // Reads an XML file, in UTF-8.
  std::optional<std::string> ReadXml(const std::string& path) {
    const auto bytes = ReadFile(path, kMaxXmlBytes);
    if (!bytes.has_value()) return std::nullopt;
    std::vector<std::string> unsaid;  // these are no losses of text
    return DecodePage(*bytes, &unsaid);
  }

  bool ReadPackage() {
    const auto container = ReadXml(kContainer);
    if (!container.has_value()) return false;
    const std::optional<std::string> path = PackagePath(*container);
    if (!path.has_value()) {
      return Fail("invalid_epub", std::string(kContainer) +
                                      " names no package in the " +
                                      files_->kind());
    }
    const auto opf = ReadXml(*path);
    if (!opf.has_value()) return false;
    package_ = ParsePackage(*opf, *path);
    if (package_.outside.has_value()) {
      return Fail("hostile_name", "names a page out of the " + files_->kind() +
                                      ": '" + ValidUtf8(*package_.outside) +
                                      "'");
    }
    if (package_.spine.empty()) {
      return Fail("invalid_epub", "its package has no pages to read");
    }
    return !files_->Has(kEncryption) || CheckDecrypted(*path);
  }

  // A file may list what was decrypted long ago, or sounds and pictures alone.
  bool CheckDecrypted(const std::string& package) {
    const auto encryption = ReadXml(kEncryption);
    if (!encryption.has_value()) return false;
    std::set<int64_t> encrypted;
    for (const std::string& path : EncryptedPaths(*encryption)) {
      if (files_->Has(path)) encrypted.insert(files_->NumberOf(path));
    }
    std::vector<std::string> read = package_.spine;
    read.push_back(package);
    for (const std::string& page : read) {
      if (encrypted.count(files_->NumberOf(page)) > 0) {
        return Fail("encrypted_document",
                    "is encrypted (DRM); its text cannot be read: '" +
                        ValidUtf8(page) + "'");
      }
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
      if (!files_->Has(path)) {
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
      return Fail("invalid_epub",
                  "none of its pages is in the " + files_->kind());
    }
    // A book without half of its pages is an error.
    if (2 * not_text.size() >= read.size() - num_missing) {
      error_ = std::move(why_not);
      return false;
    }
    if (num_missing > 0) {
      warnings_.push_back(std::to_string(num_missing) +
                          " pages of the book are not in the " +
                          files_->kind());
    }
    if (!not_text.empty()) {
      warnings_.push_back(
          std::to_string(not_text.size()) +
          " pages of the book are not text, and were left out: " +
          not_text.front() + (not_text.size() > 1 ? " and others" : ""));
    }
    return true;
  }

  // A table of contents, as far as its entries lead to the text.
  struct Contents {
    std::string path;
    std::vector<Heading> entries;
    size_t num_lost = 0;
  };

  // Returns a file of navigation if it can be read: a book without one is still
  // a book.
  Navigation ReadNavigation(const std::optional<std::string>& path,
                            Navigation (*parse)(std::string_view,
                                                const std::string&),
                            Document* document) {
    if (!path.has_value() || !files_->Has(*path)) return {};
    const auto xml = ReadXml(*path);
    if (xml.has_value()) return parse(*xml, *path);
    document->warnings.push_back(error_->message);
    return {};
  }

  Contents Located(const std::vector<NavEntry>& entries,
                   const std::string& path) const {
    Contents contents{path, {}, 0};
    std::unordered_map<std::string, bool> is_contents;  // by page
    for (const NavEntry& entry : entries) {
      const std::optional<size_t> begin =
          binder_.LocateEntry(entry.place, entry.text);
      if (!begin.has_value()) {
        ++contents.num_lost;
        continue;
      }
      const auto [known, is_new] = is_contents.emplace(entry.place.path, false);
      if (is_new) known->second = binder_.IsContents(entry.place.path);
      if (known->second) continue;
      std::string anchor = entry.place.path;
      if (!entry.place.fragment.empty()) anchor += "#" + entry.place.fragment;
      contents.entries.push_back(
          {entry.level, entry.text, *begin, std::move(anchor)});
    }
    return contents;
  }

  // Returns true if `other` divides the book so much further that `contents`
  // must be a beginning that was never finished.
  static bool IsFarRicher(const std::vector<Heading>& other,
                          const std::vector<Heading>& contents) {
    const auto num_places = [](const std::vector<Heading>& headings) {
      std::set<size_t> places;
      for (const Heading& heading : headings) places.insert(heading.begin);
      return places.size();
    };
    return num_places(other) > 2 * num_places(contents) + 1;
  }

  // Returns the best of the tables of contents and the headings of the pages,
  // in the order of the text. EPUB 3's own comes first, unless another is far
  // richer.
  std::vector<Heading> ChooseContents(Contents nav, Contents ncx,
                                      Document* document) const {
    Contents* best = &nav;
    Contents* other = &ncx;
    if (IsFarRicher(ncx.entries, nav.entries)) std::swap(best, other);
    if (best == &ncx && !nav.entries.empty()) {
      document->warnings.push_back(
          "the table of contents in " + nav.path + " has " +
          std::to_string(nav.entries.size()) + " entries; that in " + ncx.path +
          ", with " + std::to_string(ncx.entries.size()) + ", was taken");
    }
    if (best->num_lost > 0) {
      document->warnings.push_back(
          std::to_string(best->num_lost) +
          " entries of the table of contents lead to no page of the book");
    }
    std::vector<Heading> chosen = std::move(best->entries);
    // In some books the navigation has a single entry, the book, or a few.
    if (chosen.size() < kFewEntries) {
      std::vector<Heading> headings = HeadingsOfPages();
      if (IsFewFor(headings, chosen)) chosen = std::move(headings);
      chosen = WithUndeclared(document->text, std::move(chosen));
    }
    AddUnlistedIndex(&chosen);
    std::stable_sort(
        chosen.begin(), chosen.end(),
        [](const Heading& a, const Heading& b) { return a.begin < b.begin; });
    // A section that is listed twice is one section.
    chosen.erase(std::unique(chosen.begin(), chosen.end(),
                             [](const Heading& a, const Heading& b) {
                               return a.begin == b.begin &&
                                      a.level == b.level && a.text == b.text;
                             }),
                 chosen.end());
    return chosen;
  }

  static bool IsFewFor(const std::vector<Heading>& headings,
                       const std::vector<Heading>& contents) {
    return contents.size() < 2 ? headings.size() > contents.size()
                               : IsFarRicher(headings, contents);
  }

  // Returns the headings of the pages, and the titles of those that have none
  // if they are more.
  std::vector<Heading> HeadingsOfPages() const {
    const std::vector<Heading>& headings = binder_.headings();
    const std::vector<Heading>& titles = binder_.page_titles();
    if (titles.size() <= headings.size()) return headings;
    std::vector<Heading> all;
    std::merge(headings.begin(), headings.end(), titles.begin(), titles.end(),
               std::back_inserter(all), [](const Heading& a, const Heading& b) {
                 return a.begin < b.begin;
               });
    return all;
  }

  void AddNavigation(Document* document) {
    Navigation nav = ReadNavigation(package_.nav, &ParseNav, document);
    Navigation ncx = ReadNavigation(package_.ncx, &ParseNcx, document);
    document->sections = SectionsOf(ChooseContents(
        Located(nav.contents, package_.nav.value_or("")),
        Located(ncx.contents, package_.ncx.value_or("")), document));
    TakeLabels(&document->sections);
    if (nav.pages.empty()) nav.pages = std::move(ncx.pages);
    if (!nav.pages.empty()) AddPages(nav.pages, document);
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

  void AddPages(const std::vector<NavEntry>& pages, Document* document) const {
    document->pages.clear();
    for (const NavEntry& entry : pages) {
      const std::optional<size_t> begin = binder_.Locate(entry.place);
      if (begin.has_value()) document->pages.push_back({*begin, entry.text});
    }
    std::stable_sort(
        document->pages.begin(), document->pages.end(),
        [](const Page& a, const Page& b) { return a.begin < b.begin; });
  }

  const std::string name_;
  BookFiles* const files_;
  EpubPackage package_;
  BookBinder binder_;
  std::vector<std::string> warnings_;
  std::optional<Error> error_;
};

template <typename Opened>  // a variant of files and Error
Result ReadOpened(const std::string& name, Opened opened) {
  if (Error* error = std::get_if<Error>(&opened)) {
    if (error->code == "invalid_archive") error->code = "invalid_epub";
    return std::move(*error);
  }
  return EpubReader(name, std::get<0>(opened).get()).Read();
}

}  // namespace

Result ReadEpub(const std::string& name, const std::string& bytes) {
  return ReadOpened(name, ZipArchive::Open(name, bytes));
}

Result ReadEpub(const std::string& name, const FileDescriptor& file) {
  return ReadOpened(name, ZipArchive::Open(name, file));
}

bool IsEpubFolder(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failed;
  const auto has_container = [&](const fs::path& folder) {
    return fs::is_regular_file(folder / kContainer, failed);
  };
  if (has_container(path)) return true;
  if (fs::exists(fs::path(path) / "index.html", failed)) return false;
  // Books are also packed together with their folder.
  for (const fs::directory_entry& entry :
       fs::directory_iterator(path, failed)) {
    if (entry.is_directory(failed) && !entry.is_symlink(failed) &&
        has_container(entry.path())) {
      return true;
    }
  }
  return false;
}

Result ReadEpubFolder(const std::string& path) {
  return ReadOpened(path, FolderFiles::Open(path));
}

}  // namespace tiercel::document
