#include "lib/documents/html.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "lib/documents/encoding.h"
#include "lib/documents/html_element.h"
#include "lib/documents/html_tree.h"
#include "lib/documents/text_writer.h"

namespace tiercel::document {
namespace {

// A longer string in a page mark is text, not the number of a page.
constexpr size_t kMaxPageNumberBytes = 16;

const GumboVector& ChildrenOf(const GumboNode& node) {
  return node.v.element.children;
}

const GumboNode* ChildAt(const GumboNode& node, unsigned i) {
  return static_cast<const GumboNode*>(ChildrenOf(node).data[i]);
}

bool IsText(const GumboNode& node) {
  return node.type == GUMBO_NODE_TEXT || node.type == GUMBO_NODE_CDATA ||
         node.type == GUMBO_NODE_WHITESPACE;
}

// Returns the text with which an element begins, a few levels deep.
std::string_view FirstText(const GumboNode& element) {
  const GumboNode* node = &element;
  for (int depth = 0; depth < 8; ++depth) {
    if (IsText(*node)) return node->v.text.text;
    if (node->type != GUMBO_NODE_ELEMENT || ChildrenOf(*node).length == 0) {
      return {};
    }
    node = ChildAt(*node, 0);
  }
  return {};
}

// Reads the language, title and author of a page.
void ReadHead(const GumboNode& root, HtmlPage* page) {
  page->language = OneLine(Attribute(root.v.element, "lang"));
  if (page->language.empty()) {
    page->language = OneLine(Attribute(root.v.element, "xml:lang"));
  }
  for (unsigned i = 0; i < ChildrenOf(root).length; ++i) {
    const GumboNode& head = *ChildAt(root, i);
    if (head.type != GUMBO_NODE_ELEMENT ||
        head.v.element.tag != GUMBO_TAG_HEAD) {
      continue;
    }
    for (unsigned j = 0; j < ChildrenOf(head).length; ++j) {
      const GumboNode& child = *ChildAt(head, j);
      if (child.type != GUMBO_NODE_ELEMENT) continue;
      const GumboElement& element = child.v.element;
      if (element.tag == GUMBO_TAG_TITLE && page->title.empty()) {
        page->title = OneLine(FirstText(child));
      } else if (element.tag == GUMBO_TAG_META && page->author.empty()) {
        const std::string name = Lowercase(Attribute(element, "name"));
        if (name == "author" || name == "dc.creator") {
          page->author = OneLine(Attribute(element, "content"));
        }
      }
    }
  }
}

// Walks the tree with a stack of its own, since a page may be nested deeper
// than the thread's stack allows.
class Reader {
 public:
  explicit Reader(HtmlPage* page) : page_(page) {}

  void Read(const GumboNode& root) {
    Enter(root);
    while (!open_.empty()) {
      Open& top = open_.back();
      if (top.next_child == ChildrenOf(*top.node).length) {
        Leave(*top.node);
        open_.pop_back();
        continue;
      }
      const GumboNode* child = ChildAt(*top.node, top.next_child++);
      if (child->type == GUMBO_NODE_ELEMENT) {
        if (!IsLeftOut(child->v.element)) {
          Enter(*child);
        } else if (IsGutenbergFrame(child->v.element)) {
          page_->had_frame = true;
        }
      } else if (IsText(*child)) {
        WriteText(child->v.text.text);
      }
    }
    Finish();
  }

 private:
  struct Open {
    const GumboNode* node;
    unsigned next_child;
    int num_parts;   // items or cells so far
    size_t heading;  // its number, if it is one
  };
  // An element's id, as a mark; the mark's position in the text is known once
  // all is written.
  struct Anchor {
    std::string id;
    size_t mark;
  };
  struct OpenHeading {
    int level;
    size_t mark;
    size_t end;  // end of its words, in bytes of the text
    std::string anchor;
  };
  struct PageBreak {
    std::string number;
    size_t mark;
  };

  void WriteText(std::string_view text) {
    if (preformatted_ > 0) {
      writer_.Preformatted(text);
    } else {
      writer_.Words(text);
    }
  }

  void Enter(const GumboNode& node) {
    const GumboElement& element = node.v.element;
    const Role role = RoleOf(element.tag);
    switch (role) {
      case Role::kLine:
      case Role::kRow:
        writer_.Break(1);
        break;
      case Role::kParagraph:
      case Role::kHeading:
        // A paragraph that opens an item starts on the line of the item's
        // marker.
        writer_.Break(starts_item_ ? 1 : 2);
        break;
      case Role::kList:
        writer_.Break(lists_ > 0 ? 1 : 2);
        ++lists_;
        break;
      case Role::kItem:
        EnterItem();
        break;
      case Role::kDefinition:
        writer_.Break(1);
        writer_.Indent(4);
        break;
      case Role::kCell:
        if (!open_.empty() && open_.back().num_parts++ > 0) {
          writer_.Words(" | ");
        }
        break;
      case Role::kPreformatted:
        writer_.Break(2);
        ++preformatted_;
        break;
      case Role::kLineBreak:
        writer_.Line();
        break;
      case Role::kInline:
      case Role::kLeftOut:
        break;
    }
    starts_item_ = role == Role::kItem || role == Role::kDefinition;
    if (element.attributes.length > 0) NotePlaces(node);
    if (role == Role::kHeading) {
      headings_.push_back({HeadingLevel(element.tag), writer_.Mark(), 0,
                           std::string(Attribute(element, "id"))});
    }
    if (WantsBrackets(node)) writer_.Words("[");
    open_.push_back({&node, 0, 0, headings_.size() - 1});
  }

  // Notes what the element's attributes declare: an anchor, a link, or the
  // start of a printed page.
  void NotePlaces(const GumboNode& node) {
    const GumboElement& element = node.v.element;
    std::string_view id = Attribute(element, "id");
    if (id.empty() && element.tag == GUMBO_TAG_A) {
      id = Attribute(element, "name");
    }
    if (!id.empty()) {
      anchors_.push_back({std::string(id), writer_.Mark()});
    }
    if (element.tag == GUMBO_TAG_A) {
      const std::string_view link = Attribute(element, "href");
      if (!link.empty()) page_->links.emplace_back(link);
    }
    if (IsPageBreak(element)) {
      std::string number = OneLine(Attribute(element, "aria-label"));
      if (number.empty()) number = OneLine(Attribute(element, "title"));
      if (number.empty()) number = OneLine(FirstText(node));
      if (number.empty() || number.size() > kMaxPageNumberBytes) return;
      page_breaks_.push_back({std::move(number), writer_.Mark()});
    }
  }

  static bool WantsBrackets(const GumboNode& node) {
    if (!IsNoteNumber(node.v.element)) return false;
    const std::string_view text = FirstText(node);
    return !text.empty() && text.front() != '[' && text.front() != '(';
  }

  // Returns true if the parent of the node that is being left is a list item.
  // Then only another paragraph of the same item asks for a blank line.
  bool IsInItem() const {
    if (open_.size() < 2) return false;
    const GumboTag parent = open_[open_.size() - 2].node->v.element.tag;
    return parent == GUMBO_TAG_LI || parent == GUMBO_TAG_DD;
  }

  void EnterItem() {
    writer_.Break(1);
    std::string marker = "- ";
    if (!open_.empty()) {
      const int number = ++open_.back().num_parts;
      if (open_.back().node->v.element.tag == GUMBO_TAG_OL) {
        marker = std::to_string(number) + ". ";
      }
    }
    writer_.Indent(2);
    writer_.SetMarker(std::move(marker));
  }

  void Leave(const GumboNode& node) {
    if (WantsBrackets(node)) writer_.Words("]");
    switch (RoleOf(node.v.element.tag)) {
      case Role::kLine:
      case Role::kRow:
        writer_.Break(1);
        break;
      case Role::kHeading:
        headings_[open_.back().heading].end = writer_.text().size();
        writer_.Break(IsInItem() ? 1 : 2);
        break;
      case Role::kParagraph:
        writer_.Break(IsInItem() ? 1 : 2);
        break;
      case Role::kList:
        --lists_;
        writer_.Break(lists_ > 0 ? 1 : 2);
        break;
      case Role::kItem:
        writer_.Indent(-2);
        writer_.DropMarker();
        writer_.Break(1);
        break;
      case Role::kDefinition:
        writer_.Indent(-4);
        writer_.Break(1);
        break;
      case Role::kPreformatted:
        --preformatted_;
        writer_.Break(2);
        break;
      case Role::kCell:
      case Role::kLineBreak:
      case Role::kInline:
      case Role::kLeftOut:
        break;
    }
  }

  // Gives each anchor, heading and page its position in the text.
  void Finish() {
    page_->num_controls = writer_.num_controls();
    page_->text = writer_.Take();
    const std::vector<size_t> marks = writer_.Marks();
    std::unordered_map<size_t, const std::string*> last_at;  // ids by place
    for (Anchor& anchor : anchors_) {
      const size_t place = marks[anchor.mark];
      const auto [entry, is_new] =
          page_->anchors.emplace(std::move(anchor.id), place);
      if (is_new) last_at[place] = &entry->first;
    }
    for (OpenHeading& heading : headings_) {
      const size_t begin = marks[heading.mark];
      if (heading.end <= begin) continue;
      const auto here = last_at.find(begin);
      if (heading.anchor.empty() && here != last_at.end()) {
        heading.anchor = *here->second;
      }
      page_->headings.push_back(
          {heading.level,
           OneLine(page_->text.substr(begin, heading.end - begin)), begin,
           std::move(heading.anchor)});
    }
    for (PageBreak& page_break : page_breaks_) {
      page_->pages.push_back(
          {marks[page_break.mark], std::move(page_break.number)});
    }
  }

  HtmlPage* const page_;
  TextWriter writer_;
  std::vector<Open> open_;
  std::vector<Anchor> anchors_;
  std::vector<OpenHeading> headings_;
  std::vector<PageBreak> page_breaks_;
  int lists_ = 0;
  int preformatted_ = 0;
  bool starts_item_ = false;
};

bool IsVoid(std::string_view tag) {
  constexpr std::array<std::string_view, 14> kVoid = {
      "area",  "base", "br",   "col",   "embed",  "hr",    "img",
      "input", "link", "meta", "param", "source", "track", "wbr"};
  return std::find(kVoid.begin(), kVoid.end(), tag) != kVoid.end();
}

}  // namespace

std::optional<HtmlPage> ReadHtmlPage(std::string_view html) {
  const HtmlTree tree(html);
  if (tree.root() == nullptr) return std::nullopt;
  HtmlPage page;
  ReadHead(*tree.root(), &page);
  Reader(&page).Read(*tree.root());
  return page;
}

void FillFrom(HtmlPage page, Document* document) {
  document->text = std::move(page.text);
  document->title = std::move(page.title);
  document->author = std::move(page.author);
  document->language = std::move(page.language);
  document->sections = SectionsOf(page.headings);
  document->pages = std::move(page.pages);
  WarnOf(page.num_controls, page.had_frame, document);
}

std::string XhtmlAsHtml(std::string_view xhtml) {
  std::string html;
  html.reserve(xhtml.size() + xhtml.size() / 16);
  size_t copied = 0;
  for (size_t at = xhtml.find('<'); at != std::string_view::npos;
       at = xhtml.find('<', at)) {
    if (xhtml.substr(at, 4) == "<!--") {
      at = xhtml.find("-->", at);
      if (at == std::string_view::npos) break;
      continue;
    }
    size_t name_end = at + 1;
    while (name_end < xhtml.size() &&
           (std::isalnum(static_cast<unsigned char>(xhtml[name_end])) != 0 ||
            xhtml[name_end] == ':' || xhtml[name_end] == '-')) {
      ++name_end;
    }
    if (name_end == at + 1) {
      ++at;
      continue;
    }
    const std::string_view name = xhtml.substr(at + 1, name_end - at - 1);
    size_t end = name_end;  // end of the tag; a '>' in quotes does not end it
    char quote = 0;
    for (; end < xhtml.size(); ++end) {
      const char c = xhtml[end];
      if (quote != 0) {
        if (c == quote) quote = 0;
      } else if (c == '"' || c == '\'') {
        quote = c;
      } else if (c == '>') {
        break;
      }
    }
    if (end == xhtml.size()) break;
    if (xhtml[end - 1] == '/' && end - 1 >= name_end && !IsVoid(name)) {
      html.append(xhtml, copied, end - 1 - copied);
      html.append("></").append(name).append(">");
      copied = end + 1;
    }
    at = end;
  }
  html.append(xhtml, copied);
  return html;
}

void WarnOf(size_t num_controls, bool had_frame, Document* document) {
  if (num_controls > 0) {
    document->warnings.push_back(std::to_string(num_controls) +
                                 " control characters became spaces");
  }
  if (had_frame) {
    document->warnings.push_back(
        "Project Gutenberg's frame around the book was left out");
  }
}

}  // namespace tiercel::document
