#ifndef TIERCEL_APPS_DOCUMENT_BOOK_BINDER_H_
#define TIERCEL_APPS_DOCUMENT_BOOK_BINDER_H_

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "apps/document/document.h"
#include "apps/document/href.h"
#include "apps/document/html.h"

namespace tiercel::document {

// Makes one document of the HTML pages that a book consists of, in the order in
// which they are added, a blank line between them.
class BookBinder {
 public:
  // `path` is the page's file, from the book's root.
  void Add(const std::string& path, HtmlPage page);

  // Where a place in a page that was added lies in the text: where its fragment
  // does, if the page has that, else where the page begins; nowhere if it lay
  // in a frame that was left out.
  std::optional<size_t> Locate(const Place& place) const;

  // Whether a page that was added links to most of the others: a table of
  // contents.
  bool IsContents(const std::string& path) const;

  // Bytes of the text so far.
  size_t num_bytes() const { return document_.text.size(); }
  // The headings of all pages, in the order of the text; an anchor has its
  // page's path.
  const std::vector<Heading>& headings() const { return headings_; }

  // The text, the pages, and warnings of what was left out. Ends the binder.
  Document Take();

 private:
  struct Bound {
    size_t begin;
    std::unordered_map<std::string, size_t> anchors;  // within the page
    std::vector<std::string> links;
    bool had_frame;
  };
  Document document_;
  std::vector<Heading> headings_;
  std::unordered_map<std::string, Bound> bound_;
  size_t num_controls_ = 0;
  bool had_frame_ = false;
};

}  // namespace tiercel::document

#endif  // TIERCEL_APPS_DOCUMENT_BOOK_BINDER_H_
