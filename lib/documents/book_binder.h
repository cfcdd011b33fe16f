#ifndef TIERCEL_LIB_DOCUMENTS_BOOK_BINDER_H_
#define TIERCEL_LIB_DOCUMENTS_BOOK_BINDER_H_

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/documents/document.h"
#include "lib/documents/href.h"
#include "lib/documents/html.h"

namespace tiercel::document {

// Joins the HTML pages of a book into one document, in the order in which they
// are added, with a blank line between them.
class BookBinder {
 public:
  // `path` is the page's file, from the book's root.
  void Add(const std::string& path, HtmlPage page);

  // The position in the text of a place in a page that was added: its
  // fragment's if the page has that fragment, else the page's start. Nothing if
  // the place lay in a frame that was left out.
  std::optional<size_t> Locate(const Place& place) const;

  // Returns the position of an entry of a table of contents. If the page lacks
  // the fragment it is the heading of that page with the entry's words, if
  // there is one.
  std::optional<size_t> LocateEntry(const Place& place,
                                    const std::string& title) const;

  // Returns true if a page that was added links to most of the others, as a
  // table of contents does.
  bool IsContents(const std::string& path) const;

  // The size of the text so far, in bytes.
  size_t num_bytes() const { return document_.text.size(); }
  // The beginnings of pages that have no heading, if each is set apart as one
  // would be: by the page's own title, or by the label of a chapter.
  const std::vector<Heading>& page_titles() const { return page_titles_; }
  // The headings of all pages, in the order of the text; an anchor has its
  // page's path.
  const std::vector<Heading>& headings() const { return headings_; }

  // Returns the text, the pages, and warnings of what was left out. The binder
  // must not be used afterwards.
  Document Take();

 private:
  struct Bound {
    size_t begin;
    std::unordered_map<std::string, size_t> anchors;  // within the page
    // Places in the text of the first heading with each key (HeadingKey): of
    // the whole heading, and of its title alone.
    std::unordered_map<std::string, size_t> headings;
    std::unordered_map<std::string, size_t> titles;
    std::vector<HtmlLink> links;
    bool had_frame;
  };
  Document document_;
  std::vector<Heading> headings_;
  std::vector<Heading> page_titles_;
  std::unordered_map<std::string, Bound> bound_;
  size_t num_controls_ = 0;
  bool had_frame_ = false;
};

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_BOOK_BINDER_H_
