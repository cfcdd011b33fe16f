#include "lib/documents/folder.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "lib/documents/book_binder.h"
#include "lib/documents/error.h"
#include "lib/documents/file.h"
#include "lib/documents/href.h"
#include "lib/documents/html.h"
#include "lib/documents/outline.h"
#include "lib/documents/page.h"
#include "lib/documents/undeclared_headings.h"

namespace tiercel::document {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndexNames[] = {
    "index.html",   "index.htm", "index.xhtml", "contents.html",
    "contents.htm", "toc.html",  "toc.htm"};
constexpr size_t kMaxNamed = 5;  // names listed in a warning

bool IsPage(const std::string& name) {
  return HasExtension(name, {".html", ".htm", ".xhtml"});
}

class FolderReader {
 public:
  explicit FolderReader(const std::string& path) : path_(path) {}

  Result Read() {
    std::error_code failed;
    root_ = fs::canonical(path_, failed);
    const std::optional<std::string> index = failed ? std::nullopt : Index();
    if (!index.has_value()) {
      return InputError(path_, "not_a_regular_file",
                        "is a directory without an index of HTML pages "
                        "(index.html)");
    }
    // The index; for a frame set, the pages in its frames, of which one lists
    // the others.
    std::vector<Listing> listings(1);
    if (!AddPage(*index, &listings[0])) return *std::move(error_);
    const std::vector<std::string> frames = listings[0].frames;
    for (const std::string& frame : frames) {
      if (const auto page = Linked(*index, frame); page.has_value()) {
        listings.push_back({page->path, {}, {}, {}});
        if (!AddPage(page->path, &listings.back())) return *std::move(error_);
      }
    }
    for (const Listing& listing : listings) {
      if (!AddLinked(listing)) return *std::move(error_);
    }
    WarnOf(missing_, "pages that the index lists are not there: ");
    WarnOfUnread();
    std::vector<Heading> headings = Nested();
    Document document = binder_.Take();
    document.title = title_;
    document.author = author_;
    document.language = language_;
    document.sections =
        SectionsOf(WithUndeclared(document.text, std::move(headings)));
    document.warnings.insert(document.warnings.begin(), warnings_.begin(),
                             warnings_.end());
    return document;
  }

 private:
  std::optional<std::string> Index() const {
    for (const char* name : kIndexNames) {
      if (IsWithin(name)) return name;
    }
    // Folders that several languages share have "index.zh-cn.html" and its
    // like.
    std::set<std::string> names;
    std::error_code failed;
    for (const fs::directory_entry& entry :
         fs::directory_iterator(root_, failed)) {
      std::string name = entry.path().filename().string();
      if (name.rfind("index.", 0) == 0 && IsPage(name) && IsWithin(name)) {
        names.insert(std::move(name));
      }
    }
    return names.empty() ? std::nullopt : std::optional(*names.begin());
  }

  // A page that links to others, and its links.
  struct Listing {
    std::string page;
    std::vector<HtmlLink> links;
    std::vector<HtmlLink> nav_links;
    std::vector<std::string> frames;
  };

  // Returns the place of a link to a page of the folder that is yet unread.
  std::optional<Place> Linked(const std::string& from,
                              const std::string& link) const {
    std::optional<Place> place = Resolve(from, link);
    if (!place.has_value() || !IsPage(place->path) ||
        read_.count(place->path) > 0 || !IsWithin(place->path)) {
      return std::nullopt;
    }
    return place;
  }

  // Returns the number of unread pages that links of a page lead to.
  size_t NumPages(const std::string& page,
                  const std::vector<HtmlLink>& links) const {
    std::set<std::string> pages;
    for (const HtmlLink& link : links) {
      const std::optional<Place> place = Linked(page, link.href);
      if (place.has_value()) pages.insert(place->path);
    }
    return pages.size();
  }

  // Adds the pages that a listing links to: those of its lists, then others,
  // since words around a list may link to any page. Navigation comes first if
  // it leads to far more pages; a menu or the next page is no list of all.
  // Returns false after an error.
  bool AddLinked(const Listing& listing) {
    if (NumPages(listing.page, listing.nav_links) >
        2 * NumPages(listing.page, listing.links)) {
      Listing navigation = {listing.page, listing.nav_links, {}, {}};
      for (HtmlLink& link : navigation.links) {
        link.depth = std::max(link.depth, 1);
      }
      if (!AddLinked(navigation)) return false;
    }
    for (const bool listed : {true, false}) {
      for (const HtmlLink& link : listing.links) {
        if ((link.depth > 0) != listed) continue;
        const std::optional<Place> place = Linked(listing.page, link.href);
        if (listed) NoteListed(listing, link);
        if (place.has_value() && !AddPage(place->path, nullptr)) return false;
      }
    }
    return true;
  }

  // Notes how deep the contents list a page, or that it is not there.
  void NoteListed(const Listing& listing, const HtmlLink& link) {
    const std::optional<Place> place = Resolve(listing.page, link.href);
    if (!place.has_value() || !IsPage(place->path)) return;
    std::error_code failed;
    if (!fs::exists(root_ / place->path, failed)) missing_.insert(place->path);
    std::string anchor = place->path;
    if (!place->fragment.empty()) anchor += "#" + place->fragment;
    depths_.emplace(std::move(anchor), link.depth);
  }

  // Returns the headings with the levels at which the contents list them: in
  // some books the heading of every page is an <h1>. A heading that is not
  // listed lies as far below the last one that is as HTML has it.
  std::vector<Heading> Nested() const {
    std::vector<Heading> headings = binder_.headings();
    std::set<int> listed;
    for (const auto& [anchor, depth] : depths_) listed.insert(depth);
    if (listed.size() < 2) return headings;
    constexpr int kLevelsOfHtml = 6;
    std::string page;
    int level = 0;       // the last heading's that is listed
    int html_level = 0;  // the same, by its element
    for (Heading& heading : headings) {
      const std::string path =
          heading.anchor.substr(0, heading.anchor.find('#'));
      // A link to a page is one to its first heading.
      auto depth =
          heading.anchor != path ? depths_.find(heading.anchor) : depths_.end();
      if (depth == depths_.end() && path != page) depth = depths_.find(path);
      page = path;
      if (depth != depths_.end()) {
        level = depth->second * kLevelsOfHtml;
        html_level = heading.level;
        heading.level = level;
      } else {
        heading.level = std::max(level + heading.level - html_level, 0);
      }
    }
    return headings;
  }

  // Returns true if `page` is a regular file that lies within the folder, after
  // all links are followed.
  bool IsWithin(const std::string& page) const {
    std::error_code failed;
    const fs::path file = fs::canonical(root_ / page, failed);
    if (failed || !fs::is_regular_file(file, failed)) return false;
    const auto ends =
        std::mismatch(root_.begin(), root_.end(), file.begin(), file.end());
    return ends.first == root_.end();
  }

  // Returns false after an error. `listing` receives the page's links; the
  // listing of the index is the first page.
  bool AddPage(const std::string& page, Listing* listing) {
    read_.insert(page);
    const std::string file = (root_ / page).string();
    std::variant<std::string, Error> bytes = ReadFile(file);
    if (Error* error = std::get_if<Error>(&bytes)) return Fail(error);
    const std::string& html = std::get<std::string>(bytes);
    num_bytes_ += html.size();
    if (num_bytes_ > kMaxFileBytes) {
      error_ = TooLarge(path_, "all its pages", num_bytes_, kMaxFileBytes);
      return false;
    }
    if (auto error = CheckText(file, html); error.has_value()) {
      return Fail(&*error);
    }
    std::vector<std::string> warnings;
    std::variant<HtmlPage, Error> result = ReadPageBytes(file, html, &warnings);
    if (Error* error = std::get_if<Error>(&result)) return Fail(error);
    HtmlPage& read = std::get<HtmlPage>(result);
    for (const std::string& warning : warnings) {
      warnings_.push_back(std::string(page).append(": ").append(warning));
    }
    if (listing != nullptr) {
      *listing = {page, read.links, read.nav_links, read.frames};
    }
    if (read_.size() == 1) {
      // A page's title often includes the name of the site.
      title_ = read.headings.empty() ? read.title : read.headings[0].text;
    }
    if (author_.empty()) author_ = read.author;
    if (language_.empty()) language_ = read.language;
    binder_.Add(page, std::move(read));
    return true;
  }

  bool Fail(Error* error) {
    error_ = std::move(*error);
    return false;
  }

  void WarnOfUnread() {
    std::set<std::string> unread;
    std::error_code failed;
    for (const fs::directory_entry& entry :
         fs::directory_iterator(root_, failed)) {
      std::string name = entry.path().filename().string();
      if (IsPage(name) && read_.count(name) == 0) unread.insert(name);
    }
    WarnOf(unread, "pages that the index does not link to were left out: ");
  }

  void WarnOf(const std::set<std::string>& pages, const char* why) {
    if (pages.empty()) return;
    std::string names;
    size_t num_named = 0;
    for (const std::string& name : pages) {
      if (num_named++ == kMaxNamed) break;
      names += (names.empty() ? "" : ", ") + name;
    }
    if (pages.size() > kMaxNamed) names += ", ...";
    warnings_.push_back(
        std::to_string(pages.size()).append(" ").append(why).append(names));
  }

  const std::string path_;
  fs::path root_;
  std::set<std::string> read_;
  std::set<std::string> missing_;  // pages that are listed, and not there
  BookBinder binder_;
  uint64_t num_bytes_ = 0;
  std::unordered_map<std::string, int> depths_;  // nesting, by anchor
  std::string title_;
  std::string author_;
  std::string language_;
  std::vector<std::string> warnings_;
  std::optional<Error> error_;
};

}  // namespace

Result ReadFolder(const std::string& path) { return FolderReader(path).Read(); }

}  // namespace tiercel::document
