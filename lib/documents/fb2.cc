#include "lib/documents/fb2.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "lib/documents/encoding.h"
#include "lib/documents/error.h"
#include "lib/documents/html.h"
#include "lib/documents/labels.h"
#include "lib/documents/xhtml.h"
#include "lib/documents/xml.h"

namespace tiercel::document {
namespace {

constexpr int kDeepestHeading = 6;

// A body of FB2: the first, which may have the book's title; another one of the
// text, as later books of a series; or notes.
enum class Body { kFirst, kLater, kNotes };

// Writes a body as HTML, in the order of the file.
class BodyWriter {
 public:
  BodyWriter(Body kind, std::string* html) : kind_(kind), html_(html) {}

  void Write(const xmlNode& body) {
    const xmlNode* node = &body;
    while (true) {
      const bool enters = Enter(*node);
      if (enters && node->children != nullptr) {
        node = node->children;
        continue;
      }
      if (enters) Leave(*node);
      while (node != &body && node->next == nullptr) {
        node = node->parent;
        Leave(*node);
      }
      if (node == &body) return;
      node = node->next;
    }
  }

 private:
  // The tag in HTML of an element; "" for one that has none.
  std::string TagOf(const xmlNode& node) const {
    const std::string_view name = LocalName(node);
    // A title has a paragraph a line, and is one heading. That of the book is
    // none, nor are those of poems and the numbers of notes.
    if (name == "title") {
      const bool is_heading = kind_ == Body::kFirst   ? sections_ > 0
                              : kind_ == Body::kNotes ? sections_ == 0
                                                      : true;
      if (!is_heading || poems_ > 0) return "p";
      return "h" +
             std::to_string(std::min(std::max(sections_, 1), kDeepestHeading));
    }
    if (in_title_) return "";
    if (name == "p" || name == "v" || name == "subtitle" ||
        name == "text-author" || name == "date") {
      return "p";
    }
    if (name == "cite" || name == "epigraph" || name == "stanza") {
      return "blockquote";
    }
    if (name == "table" || name == "tr" || name == "td" || name == "th" ||
        name == "sup") {
      return std::string(name);
    }
    return "";
  }

  // Returns false if nothing in the node is text.
  bool Enter(const xmlNode& node) {
    if (node.type == XML_TEXT_NODE) {
      AppendEscaped(View(node.content), html_);
      return false;
    }
    const std::string_view name = LocalName(node);
    if (name.empty() || name == "image" || name == "binary") return false;
    if (name == "section") ++sections_;
    if (name == "poem") ++poems_;
    const std::string tag = TagOf(node);
    const std::string id = Attribute(&node, "id");
    if (name == "title") in_title_ = true;
    if (!tag.empty()) {
      html_->append("<" + tag);
      if (!id.empty()) {
        html_->append(" id=\"");
        AppendEscaped(id, html_);
        html_->append("\"");
      }
      html_->append(">");
    } else if (name == "empty-line") {
      html_->append("<p></p>");
    } else if (name == "a") {
      const bool is_note = Attribute(&node, "type") == "note";
      html_->append(is_note ? "<a epub:type=\"noteref\">" : "<a href=\"");
      if (!is_note) {
        AppendEscaped(Attribute(&node, "href"), html_);
        html_->append("\">");
      }
    }
    return true;
  }

  void Leave(const xmlNode& node) {
    const std::string_view name = LocalName(node);
    if (name == "title") in_title_ = false;
    const std::string tag = TagOf(node);
    if (!tag.empty()) {
      html_->append("</" + tag + ">");
    } else if (name == "p" && in_title_) {
      html_->push_back(' ');
    } else if (name == "a") {
      html_->append("</a>");
    }
    if (name == "section") --sections_;
    if (name == "poem") --poems_;
  }

  const Body kind_;
  std::string* const html_;
  int sections_ = 0;  // sections that are open
  int poems_ = 0;
  bool in_title_ = false;
};

// A body behind the first one has notes if it is named, or titled, after them.
Body KindOf(const xmlNode* body, bool is_first) {
  if (is_first) return Body::kFirst;
  if (!Attribute(body, "name").empty()) return Body::kNotes;
  const std::string title = HeadingKey(TextOf(Child(body, "title")));
  for (const std::string_view notes :
       {"notes", "footnotes", "endnotes", "comments", "примечания", "сноски",
        "комментарии", "примітки", "бележки", "anmerkungen", "poznámky"}) {
    if (title == HeadingKey(notes)) return Body::kNotes;
  }
  return Body::kLater;
}

std::string NameOf(const xmlNode* author) {
  std::string name;
  for (const char* part : {"first-name", "middle-name", "last-name"}) {
    const std::string text = TextOf(Child(author, part));
    if (!name.empty() && !text.empty()) name.push_back(' ');
    name += text;
  }
  return name.empty() ? TextOf(Child(author, "nickname")) : name;
}

void ReadDescription(const xmlNode* root, Document* document) {
  const xmlNode* const info = Child(Child(root, "description"), "title-info");
  document->title = TextOf(Child(info, "book-title"));
  document->language = TextOf(Child(info, "lang"));
  for (const xmlNode* node = Child(info, "author"); node != nullptr;
       node = node->next) {
    if (LocalName(*node) != "author") continue;
    const std::string name = NameOf(node);
    if (name.empty()) continue;
    if (!document->author.empty()) document->author += ", ";
    document->author += name;
  }
}

}  // namespace

bool StartsLikeFb2(std::string_view bytes) {
  // The charsets that such files have are ASCII in its range, or have a mark.
  std::vector<std::string> unsaid;
  const std::string_view start = bytes.substr(0, 2048);
  const bool is_wide = FindByteOrderMark(start).bytes == 2;
  const std::string text =
      is_wide ? DecodeText(start, &unsaid) : std::string(start);
  const size_t name = text.find("FictionBook");
  if (name == std::string::npos || name == 0) return false;
  // The name may have a prefix.
  const size_t tag = text.find_last_of("<> \t\r\n\"'", name - 1);
  return tag != std::string::npos && text[tag] == '<' &&
         (tag + 1 == name || text[name - 1] == ':');
}

Result ReadFb2(const std::string& name, std::string_view bytes) {
  Document document;
  const std::string xml = DecodePage(bytes, &document.warnings);
  const XmlTree tree(xml, XmlTree::Repair::kParts);
  const xmlNode* const root = Find(tree.root(), "FictionBook");
  std::string html = "<!DOCTYPE html><body>";
  size_t num_bodies = 0;
  for (const xmlNode* body = Child(root, "body"); body != nullptr;
       body = body->next) {
    if (LocalName(*body) != "body") continue;
    BodyWriter(KindOf(body, num_bodies++ == 0), &html).Write(*body);
  }
  if (num_bodies == 0) {
    return InputError(name, "invalid_fb2",
                      "is a FictionBook (FB2) without a body that can be read");
  }
  std::optional<HtmlPage> page = ReadHtmlPage(html);
  if (!page.has_value()) {
    return InputError(name, "html_too_complex",
                      "its text is nested too deeply");
  }
  std::vector<std::string> warnings = std::move(document.warnings);
  FillFrom(*std::move(page), &document);
  document.warnings.insert(document.warnings.begin(), warnings.begin(),
                           warnings.end());
  ReadDescription(root, &document);
  return document;
}

}  // namespace tiercel::document
