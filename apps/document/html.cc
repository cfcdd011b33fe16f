#include "apps/document/html.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "apps/document/encoding.h"
#include "apps/document/html_tree.h"

namespace tiercel::document {
namespace {

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Builds text: collapses white space, and keeps lines and paragraphs apart by
// no more than was asked for.
class TextWriter {
 public:
  // Text whose white space does not count.
  void Words(std::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) {
      if (IsSpace(text[i])) {
        space_ = true;
      } else if (text.substr(i, 2) == "\xC2\xA0") {  // no-break space
        space_ = true;
        ++i;
      } else if (text.substr(i, 2) == "\xC2\xAD") {  // soft hyphen
        ++i;
      } else if (text.substr(i, 3) == "\xE2\x80\x8B") {  // zero-width space
        i += 2;
      } else {
        StartText();
        if (space_ && !at_line_start_) text_.push_back(' ');
        space_ = false;
        at_line_start_ = false;
        text_.push_back(text[i]);
      }
    }
  }

  void Preformatted(std::string_view text) {
    for (const char c : text) {
      if (c == '\n') {
        ++newlines_;
        preformatted_break_ = true;
      } else {
        StartText();
        text_.push_back(c);
        at_line_start_ = false;
      }
    }
    space_ = false;
  }

  // What follows starts on a new line (1) or after a blank one (2).
  void Break(int newlines) {
    space_ = false;
    if (preformatted_break_) newlines_ = 0;
    preformatted_break_ = false;
    newlines_ = std::max(newlines_, newlines);
  }

  void Line() {
    space_ = false;
    ++newlines_;
  }

  // Written before the next text, which starts a line.
  void SetMarker(std::string marker) { marker_ = std::move(marker); }
  void DropMarker() { marker_.clear(); }
  void Indent(int columns) { indent_ += columns; }

  std::string Take() {
    if (!text_.empty()) text_.push_back('\n');
    return std::move(text_);
  }

 private:
  void StartText() {
    if (newlines_ == 0 && !text_.empty()) return;
    if (!text_.empty()) {
      text_.append(static_cast<size_t>(newlines_), '\n');
    }
    newlines_ = 0;
    preformatted_break_ = false;
    const int columns = indent_ - static_cast<int>(marker_.size());
    if (columns > 0) text_.append(static_cast<size_t>(columns), ' ');
    text_ += marker_;
    marker_.clear();
    at_line_start_ = true;
    space_ = false;
  }

  std::string text_;
  std::string marker_;
  int newlines_ = 0;                 // owed before the next text
  bool preformatted_break_ = false;  // those newlines are the page's own
  bool space_ = false;               // owed before the next word
  bool at_line_start_ = true;
  int indent_ = 0;
};

enum class Role {
  kInline,
  kLine,       // starts on its own line
  kParagraph,  // apart by blank lines
  kList,
  kItem,
  kDefinition,
  kRow,
  kCell,
  kPreformatted,
  kLineBreak,
  kLeftOut,
};

Role RoleOf(GumboTag tag) {
  switch (tag) {
    case GUMBO_TAG_HEAD:
    case GUMBO_TAG_SCRIPT:
    case GUMBO_TAG_STYLE:
    case GUMBO_TAG_NAV:
    case GUMBO_TAG_TEMPLATE:
    case GUMBO_TAG_NOSCRIPT:
    case GUMBO_TAG_IFRAME:
    case GUMBO_TAG_OBJECT:
    case GUMBO_TAG_SVG:
    case GUMBO_TAG_SELECT:
    case GUMBO_TAG_BUTTON:
    case GUMBO_TAG_TEXTAREA:
    case GUMBO_TAG_AUDIO:
    case GUMBO_TAG_VIDEO:
    case GUMBO_TAG_CANVAS:
      return Role::kLeftOut;
    case GUMBO_TAG_H1:
    case GUMBO_TAG_H2:
    case GUMBO_TAG_H3:
    case GUMBO_TAG_H4:
    case GUMBO_TAG_H5:
    case GUMBO_TAG_H6:
    case GUMBO_TAG_P:
    case GUMBO_TAG_BLOCKQUOTE:
    case GUMBO_TAG_TABLE:
    case GUMBO_TAG_CAPTION:
    case GUMBO_TAG_FIGURE:
    case GUMBO_TAG_FIGCAPTION:
    case GUMBO_TAG_SECTION:
    case GUMBO_TAG_ARTICLE:
    case GUMBO_TAG_HR:
    case GUMBO_TAG_DL:
      return Role::kParagraph;
    case GUMBO_TAG_UL:
    case GUMBO_TAG_OL:
      return Role::kList;
    case GUMBO_TAG_LI:
      return Role::kItem;
    case GUMBO_TAG_DD:
      return Role::kDefinition;
    case GUMBO_TAG_TR:
      return Role::kRow;
    case GUMBO_TAG_TD:
    case GUMBO_TAG_TH:
      return Role::kCell;
    case GUMBO_TAG_PRE:
      return Role::kPreformatted;
    case GUMBO_TAG_BR:
      return Role::kLineBreak;
    case GUMBO_TAG_BODY:
    case GUMBO_TAG_DIV:
    case GUMBO_TAG_DT:
    case GUMBO_TAG_ADDRESS:
    case GUMBO_TAG_ASIDE:
    case GUMBO_TAG_MAIN:
    case GUMBO_TAG_HEADER:
    case GUMBO_TAG_FOOTER:
    case GUMBO_TAG_FORM:
    case GUMBO_TAG_FIELDSET:
    case GUMBO_TAG_DETAILS:
    case GUMBO_TAG_SUMMARY:
      return Role::kLine;
    default:
      return Role::kInline;
  }
}

std::string_view Attribute(const GumboElement& element, const char* name) {
  const GumboAttribute* found = gumbo_get_attribute(&element.attributes, name);
  return found == nullptr ? std::string_view() : found->value;
}

// Whether an attribute says that this is no part of the text. Sphinx's links
// from a heading to itself are a pilcrow each.
bool IsLeftOut(const GumboElement& element) {
  if (RoleOf(element.tag) == Role::kLeftOut) return true;
  if (element.attributes.length == 0) return false;
  const std::string_view role = Attribute(element, "role");
  return role == "navigation" || role == "search" ||
         Attribute(element, "aria-hidden") == "true" ||
         gumbo_get_attribute(&element.attributes, "hidden") != nullptr ||
         (element.tag == GUMBO_TAG_A &&
          Attribute(element, "class") == "headerlink");
}

const GumboVector& ChildrenOf(const GumboNode& node) {
  return node.v.element.children;
}

const GumboNode* FindChild(const GumboNode& node, GumboTag tag) {
  const GumboVector& children = ChildrenOf(node);
  for (unsigned i = 0; i < children.length; ++i) {
    const auto* child = static_cast<const GumboNode*>(children.data[i]);
    if (child->type == GUMBO_NODE_ELEMENT && child->v.element.tag == tag) {
      return child;
    }
  }
  return nullptr;
}

std::string TitleOf(const GumboNode& root) {
  const GumboNode* head = FindChild(root, GUMBO_TAG_HEAD);
  const GumboNode* title =
      head == nullptr ? nullptr : FindChild(*head, GUMBO_TAG_TITLE);
  TextWriter writer;
  if (title != nullptr && ChildrenOf(*title).length > 0) {
    const auto* text =
        static_cast<const GumboNode*>(ChildrenOf(*title).data[0]);
    if (text->type == GUMBO_NODE_TEXT) writer.Words(text->v.text.text);
  }
  std::string words = writer.Take();
  if (!words.empty()) words.pop_back();
  return words;
}

// Walks the tree with a stack of its own: a page may be deeper than ours.
class Reader {
 public:
  std::string Read(const GumboNode& root) {
    Enter(root);
    while (!open_.empty()) {
      Open& top = open_.back();
      if (top.next_child == ChildrenOf(*top.node).length) {
        Leave(*top.node);
        open_.pop_back();
        continue;
      }
      const auto* child = static_cast<const GumboNode*>(
          ChildrenOf(*top.node).data[top.next_child++]);
      if (child->type == GUMBO_NODE_ELEMENT) {
        if (!IsLeftOut(child->v.element)) Enter(*child);
      } else if (child->type != GUMBO_NODE_COMMENT &&
                 child->type != GUMBO_NODE_TEMPLATE) {
        WriteText(child->v.text.text);
      }
    }
    return writer_.Take();
  }

 private:
  struct Open {
    const GumboNode* node;
    unsigned next_child;
    int num_parts;  // items or cells so far
  };

  void WriteText(std::string_view text) {
    if (preformatted_ > 0) {
      writer_.Preformatted(text);
    } else {
      writer_.Words(text);
    }
  }

  void Enter(const GumboNode& node) {
    switch (RoleOf(node.v.element.tag)) {
      case Role::kLine:
      case Role::kRow:
        writer_.Break(1);
        break;
      case Role::kParagraph:
        // A paragraph that opens an item stands beside the item's marker.
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
    const Role role = RoleOf(node.v.element.tag);
    starts_item_ = role == Role::kItem || role == Role::kDefinition;
    open_.push_back({&node, 0, 0});
  }

  // Whether the parent of the node that is being left is an item: then only
  // another paragraph of the same item asks for a blank line.
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
    switch (RoleOf(node.v.element.tag)) {
      case Role::kLine:
      case Role::kRow:
        writer_.Break(1);
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

  TextWriter writer_;
  std::vector<Open> open_;
  int lists_ = 0;
  int preformatted_ = 0;
  bool starts_item_ = false;
};

}  // namespace

std::string DeclaredCharset(std::string_view bytes) {
  std::string start(bytes.substr(0, 1024));
  for (char& c : start) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  const auto value_after = [&start](size_t at) -> std::string {
    while (at < start.size() && IsSpace(start[at])) ++at;
    if (at == start.size() || start[at] != '=') return {};
    ++at;
    while (at < start.size() &&
           (IsSpace(start[at]) || start[at] == '"' || start[at] == '\'')) {
      ++at;
    }
    const size_t end = start.find_first_of("\"'; \t\r\n/?>", at);
    return start.substr(at, end == std::string::npos ? end : end - at);
  };
  for (size_t at = start.find("<meta"); at != std::string::npos;
       at = start.find("<meta", at + 1)) {
    const size_t end = std::min(start.find('>', at), start.size());
    const size_t charset = start.find("charset", at);
    if (charset < end) return value_after(charset + std::strlen("charset"));
  }
  if (start.rfind("<?xml", 0) == 0) {
    const size_t end = std::min(start.find("?>"), start.size());
    const size_t encoding = start.find("encoding");
    if (encoding < end) return value_after(encoding + std::strlen("encoding"));
  }
  return {};
}

namespace {

// A character by number beyond Unicode leaves the parser as bytes that are no
// UTF-8.
std::string WithKnownCharacters(std::string text) {
  if (IsUtf8(text)) return text;
  std::vector<std::string> invalid;
  return ToUtf8(text, Charset::kUtf8, &invalid);
}

}  // namespace

bool ReadHtml(std::string_view html, Document* document) {
  const HtmlTree tree(html);
  if (tree.root() == nullptr) return false;
  document->title = WithKnownCharacters(TitleOf(*tree.root()));
  document->text = WithKnownCharacters(Reader().Read(*tree.root()));
  return true;
}

}  // namespace tiercel::document
