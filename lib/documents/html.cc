#include "lib/documents/html.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <utility>

#include "lib/documents/encoding.h"
#include "lib/documents/gutenberg.h"
#include "lib/documents/html_element.h"
#include "lib/documents/html_tree.h"
#include "lib/documents/quotation_marks.h"
#include "lib/documents/text_writer.h"
#include "lib/documents/undeclared_headings.h"

namespace tiercel::document {
namespace {

const GumboVector& ChildrenOf(const GumboNode& node) {
  return node.v.element.children;
}

const GumboNode* ChildAt(const GumboNode& node, unsigned i) {
  return static_cast<const GumboNode*>(ChildrenOf(node).data[i]);
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
        const std::string_view instead =
            AlternativeText(*child, in_empty_heading_);
        if (!instead.empty()) {
          WriteText(instead);
        } else if (open_headings_ > 0 && IsSelfLink(*child)) {
          NoteSelfLink(child->v.element);
        } else if (!IsLeftOut(child->v.element)) {
          Enter(*child);
        } else if (IsGutenbergFrame(child->v.element)) {
          page_->had_frame = true;
          page_->frame += TextInLines(*child);
        } else if (IsNavigation(child->v.element)) {
          NoteNavigation(*child);
        }
      } else if (IsText(*child)) {
        WriteText(child->v.text.text);
      }
    }
    Finish();
  }

 private:
  static constexpr size_t kMaxBlankBytes = 256;  // white space around images
  static constexpr size_t kNoMark = SIZE_MAX;
  struct Open {
    const GumboNode* node;
    unsigned next_child;
    int num_parts;   // cells, or parts of a formula, so far
    int number;      // the next item's
    size_t heading;  // its number, if it is one
    bool is_silent;  // the page's number, which is no text
    bool is_raised;
    std::string_view closing;  // is written behind it
    size_t note;  // the mark before it, if it is a note's mark in a heading
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
    size_t text_begin;  // the size of the text before it
    size_t end;         // end of its words, in bytes of the text
    std::string anchor;
    std::vector<std::pair<size_t, size_t>> notes;  // marks, and ends
  };
  struct PageBreak {
    std::string number;
    size_t mark;
  };

  void WriteText(std::string_view text) {
    if (silent_ > 0) return;
    if (open_headings_ > 0 && is_border_ && !writer_.is_apart() &&
        AreGlued(HeadingSoFar(), text)) {
      writer_.Words(" ");
    }
    is_border_ = false;
    if (preformatted_ > 0) {
      writer_.Preformatted(text);
    } else {
      writer_.Words(text);
    }
  }

  // The words of the heading that is open, if they are few.
  std::string_view HeadingSoFar() const {
    constexpr size_t kMaxLabelBytes = 40;
    const std::string_view text = writer_.text();
    const size_t begin = headings_.back().text_begin;
    return text.size() - begin > kMaxLabelBytes ? std::string_view()
                                                : text.substr(begin);
  }

  // A link of a heading to itself is no text, but may have its identifier.
  void NoteSelfLink(const GumboElement& link) {
    std::string_view id = Attribute(link, "id");
    if (id.empty()) id = Attribute(link, "name");
    if (!id.empty()) {
      anchors_.push_back({std::string(id), headings_.back().mark});
    }
  }

  void Enter(const GumboNode& node) {
    is_border_ = true;
    const GumboElement& element = node.v.element;
    const Role role = RoleOf(element);
    const bool is_group = EnterFormula(element);
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
        EnterItem(element);
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
    if (IsList(element.tag)) ++depth_;
    std::optional<PageMark> mark = PageMarkOf(node);
    const bool is_silent = mark.has_value() && mark->is_text;
    if (element.attributes.length > 0) NotePlaces(element, std::move(mark));
    if (role == Role::kHeading) {
      headings_.push_back({HeadingLevel(element),
                           writer_.Mark(),
                           writer_.text().size(),
                           0,
                           std::string(Attribute(element, "id")),
                           {}});
      ++open_headings_;
      const std::optional<std::string> text = ShortText(node, kMaxBlankBytes);
      in_empty_heading_ = text.has_value() && OneLine(*text).empty();
    }
    const bool is_number = IsNoteNumber(node, raised_ > 0);
    const bool is_note = open_headings_ > 0 && (is_number || IsNoteMark(node));
    const bool is_raised = IsRaised(element);
    const bool has_bracket = is_number && WantsBrackets(node);
    open_.push_back({&node, 0, 0, FirstNumberOf(node), headings_.size() - 1,
                     is_silent, is_raised,
                     has_bracket ? "]"
                     : is_group  ? ")"
                                 : "",
                     is_note ? writer_.Mark() : kNoMark});
    if (is_silent) ++silent_;
    if (is_raised) ++raised_;
    if (has_bracket) writer_.Words("[");
    if (element.tag == GUMBO_TAG_Q) EnterQuotation(node);
  }

  // Writes what stands before a part of a formula. Returns true if it has
  // parentheses.
  bool EnterFormula(const GumboElement& element) {
    if (open_.empty() || element.tag_namespace != GUMBO_NAMESPACE_MATHML) {
      return false;
    }
    Open& parent = open_.back();
    const GumboElement& formula = parent.node->v.element;
    const std::string_view sign = SignBefore(parent.num_parts, formula);
    const bool has_parts = !SignBefore(1, formula).empty();
    const std::string& before = writer_.text();
    if (!SignBefore(1, element).empty() && !before.empty() &&
        std::isdigit(static_cast<unsigned char>(before.back())) != 0) {
      writer_.Words(" ");  // "3 1/2"
    }
    writer_.Words(sign);
    if (!has_parts) return false;
    ++parent.num_parts;
    const bool is_group = IsGroup(element);
    if (is_group) writer_.Words("(");
    return is_group;
  }

  // Notes the links of an element that is no text.
  void NoteNavigation(const GumboNode& navigation) {
    std::vector<std::pair<const GumboNode*, int>> left = {{&navigation, 0}};
    while (!left.empty()) {
      auto [node, depth] = left.back();
      left.pop_back();
      const GumboElement& element = node->v.element;
      const std::string_view link = Attribute(element, "href");
      if (element.tag == GUMBO_TAG_A && !link.empty()) {
        page_->nav_links.push_back({std::string(link), depth});
      }
      if (IsList(element.tag)) ++depth;
      for (unsigned i = element.children.length; i-- > 0;) {
        const GumboNode* const child = ChildAt(*node, i);
        if (child->type == GUMBO_NODE_ELEMENT) left.emplace_back(child, depth);
      }
    }
  }

  static bool IsList(GumboTag tag) {
    return tag == GUMBO_TAG_UL || tag == GUMBO_TAG_OL || tag == GUMBO_TAG_DL;
  }

  // Notes what the element's attributes declare: an anchor, a link, or the
  // start of a printed page.
  void NotePlaces(const GumboElement& element, std::optional<PageMark> mark) {
    std::string_view id = Attribute(element, "id");
    if (id.empty() && element.tag == GUMBO_TAG_A) {
      id = Attribute(element, "name");
    }
    if (!id.empty()) {
      anchors_.push_back({std::string(id), writer_.Mark()});
    }
    if (element.tag == GUMBO_TAG_A) {
      const std::string_view link = Attribute(element, "href");
      if (!link.empty()) {
        page_->links.push_back({std::string(link), depth_});
      }
    }
    if (element.tag == GUMBO_TAG_FRAME) {
      page_->frames.emplace_back(Attribute(element, "src"));
    }
    // An element and one in it may mark the same page.
    if (mark.has_value() && !mark->number.empty() &&
        (page_breaks_.empty() || page_breaks_.back().number != mark->number)) {
      page_breaks_.push_back({std::move(mark->number), writer_.Mark()});
    }
  }

  // Returns true for a note's number that has no brackets, in it or around it.
  bool WantsBrackets(const GumboNode& node) const {
    const std::optional<std::string> all = ShortText(node, kMaxBlankBytes);
    const std::string text =
        OneLine(all.has_value() ? *all : std::string(FirstText(node)));
    const std::string& before = writer_.text();
    return !text.empty() && text.front() != '[' && text.front() != '(' &&
           (before.empty() || before.back() != '[');
  }

  // Returns true if the parent of the node that is being left is a list item.
  // Then only another paragraph of the same item asks for a blank line.
  bool IsInItem() const {
    if (open_.size() < 2) return false;
    const GumboTag parent = open_[open_.size() - 2].node->v.element.tag;
    return parent == GUMBO_TAG_LI || parent == GUMBO_TAG_DD;
  }

  // The number of the first item of a numbered list.
  static int FirstNumberOf(const GumboNode& node) {
    const GumboElement& element = node.v.element;
    if (element.tag != GUMBO_TAG_OL) return 0;
    if (const auto start = NumberAttribute(element, "start")) return *start;
    if (!IsReversed(element)) return 1;
    int num_items = 0;
    for (unsigned i = 0; i < element.children.length; ++i) {
      const GumboNode& child = *ChildAt(node, i);
      if (child.type == GUMBO_NODE_ELEMENT &&
          child.v.element.tag == GUMBO_TAG_LI) {
        ++num_items;
      }
    }
    return num_items;
  }

  static bool IsReversed(const GumboElement& list) {
    return gumbo_get_attribute(&list.attributes, "reversed") != nullptr;
  }

  // Writes the mark that opens a quotation, unless it is in its text.
  void EnterQuotation(const GumboNode& node) {
    std::string_view text = FirstText(node);
    while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
    if (BeginsWithQuotationMark(text)) return;
    const QuotationMarks marks = QuotationMarksOf(page_->language);
    const bool is_inner = num_quotations_++ % 2 == 1;
    WriteText(is_inner ? marks.inner_open : marks.open);
    open_.back().closing = is_inner ? marks.inner_close : marks.close;
  }

  void EnterItem(const GumboElement& item) {
    writer_.Break(1);
    std::string marker = "- ";
    if (!open_.empty() && open_.back().node->v.element.tag == GUMBO_TAG_OL) {
      Open& list = open_.back();
      const int number = NumberAttribute(item, "value").value_or(list.number);
      list.number = number + (IsReversed(list.node->v.element) ? -1 : 1);
      marker = ItemMarker(number, list.node->v.element, item);
    }
    writer_.Indent(2);
    writer_.SetMarker(std::move(marker));
  }

  void Leave(const GumboNode& node) {
    is_border_ = true;
    const std::string_view closing = open_.back().closing;
    if (!closing.empty()) WriteText(closing);
    if (node.v.element.tag == GUMBO_TAG_Q && !closing.empty()) {
      --num_quotations_;
    }
    if (open_.back().is_silent) --silent_;
    if (open_.back().is_raised) --raised_;
    if (open_.back().note != kNoMark) {
      headings_[open_.back().heading].notes.emplace_back(open_.back().note,
                                                         writer_.text().size());
    }
    if (IsList(node.v.element.tag)) --depth_;
    switch (RoleOf(node.v.element)) {
      case Role::kLine:
      case Role::kRow:
        writer_.Break(1);
        break;
      case Role::kHeading:
        headings_[open_.back().heading].end = writer_.text().size();
        --open_headings_;
        in_empty_heading_ = false;
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
      page_->headings.push_back({heading.level, WordsOf(heading, begin, marks),
                                 begin, std::move(heading.anchor)});
    }
    for (PageBreak& page_break : page_breaks_) {
      page_->pages.push_back(
          {marks[page_break.mark], std::move(page_break.number)});
    }
  }

  // The words of a heading, without its notes and the brackets around them.
  std::string WordsOf(const OpenHeading& heading, size_t begin,
                      const std::vector<size_t>& marks) const {
    std::string words;
    size_t at = begin;
    for (const auto& [mark, end] : heading.notes) {
      if (marks[mark] < at || end <= marks[mark]) continue;
      words.append(page_->text, at, marks[mark] - at);
      at = end;
    }
    words.append(page_->text, at, heading.end - at);
    for (const std::string_view empty : {"[]", "()"}) {
      const size_t found = words.find(empty);
      if (!heading.notes.empty() && found != std::string::npos) {
        words.erase(found, empty.size());
      }
    }
    return OneLine(words);
  }

  HtmlPage* const page_;
  TextWriter writer_;
  std::vector<Open> open_;
  std::vector<Anchor> anchors_;
  std::vector<OpenHeading> headings_;
  std::vector<PageBreak> page_breaks_;
  int lists_ = 0;  // lists of items that are open
  int depth_ = 0;  // all lists that are open
  int preformatted_ = 0;
  int num_quotations_ = 0;  // open ones that have marks
  int silent_ = 0;
  int raised_ = 0;  // elements that are open and raised
  int open_headings_ = 0;
  bool in_empty_heading_ = false;
  bool is_border_ = false;  // an element began or ended behind the last text
  bool starts_item_ = false;
};

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
  document->sections =
      SectionsOf(WithUndeclared(document->text, std::move(page.headings)));
  document->pages = std::move(page.pages);
  WarnOf(page.num_controls, page.had_frame, document);
  if (page.had_frame) ReadGutenbergFields(page.frame, document);
  LeaveOutGutenbergFrame(document);
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
