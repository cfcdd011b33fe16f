#include "lib/documents/html_element.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <system_error>
#include <utility>
#include <vector>

#include "lib/documents/encoding.h"
#include "lib/documents/labels.h"
#include "lib/documents/text_writer.h"
#include "lib/documents/unicode.h"

namespace tiercel::document {
namespace {

// A longer string in a page mark is text, not the number of a page.
constexpr size_t kMaxPageNumberBytes = 16;
constexpr size_t kMaxMarkBytes = 40;

// Elements that HTML had no name for when the parser was written.
Role RoleOfUnknown(const GumboElement& element) {
  GumboStringPiece name = element.original_tag;
  gumbo_tag_from_original_text(&name);
  return Lowercase(std::string_view(name.data, name.length)) == "dialog"
             ? Role::kLine
             : Role::kInline;
}

// Returns true for a line of a title page that is no heading, as DocBook and
// its like mark it.
bool IsOfTitlePage(const GumboElement& element) {
  for (const std::string_view name :
       {"author", "corpauthor", "copyright", "edition", "editor", "pubdate",
        "releaseinfo", "subtitle"}) {
    if (HasWord(element, "class", name)) return true;
  }
  return false;
}

// Returns an element's own style, in lower case and without white space.
std::string StyleOf(const GumboElement& element) {
  std::string style = Lowercase(Attribute(element, "style"));
  style.erase(std::remove_if(style.begin(), style.end(), IsSpace), style.end());
  return style;
}

// Returns the style of a list's numbers, as the attribute "type" names it ("a",
// "I", "1"), or "none"; "" where an element declares none.
std::string ListStyleOf(const GumboElement& element) {
  if (element.attributes.length == 0) return {};
  const std::string style = StyleOf(element);
  if (const size_t at = style.find("list-style"); at != std::string::npos) {
    const size_t colon = std::min(style.find(':', at), style.size() - 1);
    const std::string_view value = std::string_view(style).substr(
        colon + 1, style.find(';', colon) - colon - 1);
    for (const auto& [name, type] :
         {std::pair<std::string_view, const char*>{"lower-alpha", "a"},
          {"lower-latin", "a"},
          {"upper-alpha", "A"},
          {"upper-latin", "A"},
          {"lower-roman", "i"},
          {"upper-roman", "I"},
          {"decimal", "1"},
          {"none", "none"}}) {
      if (value.find(name) != std::string_view::npos) return type;
    }
  }
  return std::string(Attribute(element, "type"));
}

// Returns true for an element with the role of a heading and a level. Sphinx
// gives the captions of its tables of contents the role alone.
bool HasHeadingRole(const GumboElement& element) {
  return element.attributes.length > 0 &&
         Attribute(element, "role") == "heading" &&
         NumberAttribute(element, "aria-level").has_value();
}

// Returns true for an element whose style hides it.
bool IsStyledAway(const GumboElement& element) {
  const std::string style = StyleOf(element);
  return style.find("display:none") != std::string::npos ||
         style.find("visibility:hidden") != std::string::npos;
}

// Returns "12" for "[Pg 12]", "p. 12" and "{12}"; "" for what is no number.
std::string PageNumberIn(std::string_view text) {
  std::string number = Lowercase(OneLine(text));
  size_t begin = number.find_first_not_of("[({|. ");
  for (const std::string_view word : {"page", "pg", "p"}) {
    if (begin == std::string::npos ||
        number.compare(begin, word.size(), word) != 0) {
      continue;
    }
    const size_t next = number.find_first_not_of(". ", begin + word.size());
    if (next == std::string::npos) return {};
    if (next > begin + word.size() || std::isdigit(number[next]) != 0) {
      begin = next;
    }
    break;
  }
  const size_t end = number.find_last_not_of("])}|. ");
  if (begin == std::string::npos || end == std::string::npos || end < begin) {
    return {};
  }
  number = OneLine(text).substr(begin, end + 1 - begin);
  const bool has_digit =
      std::any_of(number.begin(), number.end(),
                  [](unsigned char c) { return std::isdigit(c) != 0; });
  const bool is_number = number.size() <= kMaxPageNumberBytes &&
                         number.find(' ') == std::string::npos &&
                         (has_digit || NumberOf(number) > 0);
  return is_number ? number : std::string();
}

bool HasPageClass(const GumboElement& element) {
  for (const std::string_view name :
       {"pagenum", "pageno", "pagenumber", "page-number", "page_number",
        "page-num", "pagebreak", "page-break"}) {
    if (HasWord(element, "class", name)) return true;
  }
  return false;
}

// Returns "12" for the id "Page_12" or "pg12".
std::string PageNumberOfId(const GumboElement& element) {
  std::string_view id = Attribute(element, "id");
  if (id.empty()) id = Attribute(element, "name");
  const std::string lower = Lowercase(id);
  for (const std::string_view word : {"page", "pg"}) {
    if (lower.compare(0, word.size(), word) != 0) continue;
    const size_t at = lower.find_first_not_of("_-.", word.size());
    if (at == std::string::npos) return {};
    const std::string number(id.substr(at));
    const bool is_digits =
        std::all_of(number.begin(), number.end(),
                    [](unsigned char c) { return std::isdigit(c) != 0; });
    return is_digits || NumberOf(number) > 0 ? number : std::string();
  }
  return {};
}

// Returns true for "1", "[2]", "(3)", "*": a note's mark.
bool IsNoteMarkText(std::string_view text) {
  std::string mark = OneLine(text);
  mark.erase(
      std::remove_if(
          mark.begin(), mark.end(),
          [](char c) { return c == '[' || c == ']' || c == '(' || c == ')'; }),
      mark.end());
  if (mark.empty() || mark.size() > 4) return false;
  return std::all_of(mark.begin(), mark.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; }) ||
         mark == "*" || mark == "**" || mark == "†" || mark == "‡" ||
         mark == "§";
}

// Returns true for "a" and "iv", which are marks of notes if they are raised.
bool IsNoteLetter(std::string_view text) {
  const std::string mark = OneLine(text);
  return (mark.size() == 1 && mark[0] >= 'a' && mark[0] <= 'z') ||
         (!mark.empty() && mark.size() <= 4 &&
          mark.find_first_not_of("ivxl") == std::string::npos);
}

// Returns true if `name` is that of a note: "fn1", "_ftnref2", "note-3",
// "cite_note-4", "sdfootnote5sym".
bool IsNoteName(std::string_view name) {
  const std::string lower = Lowercase(name);
  for (const std::string_view word :
       {"footnote", "endnote", "noteref", "footref", "fnanchor"}) {
    if (lower.find(word) != std::string::npos) return true;
  }
  const size_t begin = std::min(lower.find_first_not_of('_'), lower.size());
  for (const std::string_view word : {"cite_note", "note", "ftn", "fn"}) {
    if (lower.compare(begin, word.size(), word) != 0) continue;
    size_t number = begin + word.size();
    if (lower.compare(number, 3, "ref") == 0) number += 3;
    number = lower.find_first_not_of("-_:.", number);
    return number != std::string::npos &&
           std::isdigit(static_cast<unsigned char>(lower[number])) != 0;
  }
  return false;
}

bool HasLink(const GumboNode& node) {
  const GumboVector& children = node.v.element.children;
  return std::any_of(
      children.data, children.data + children.length, [](const void* child) {
        const auto& inner = *static_cast<const GumboNode*>(child);
        return inner.type == GUMBO_NODE_ELEMENT &&
               inner.v.element.tag == GUMBO_TAG_A;
      });
}

// Returns true if there is a raised element in a node, of which ShortText has
// found that it is small.
bool HasRaised(const GumboNode& node) {
  std::vector<const GumboNode*> left = {&node};
  while (!left.empty()) {
    const GumboNode& next = *left.back();
    left.pop_back();
    if (next.type != GUMBO_NODE_ELEMENT) continue;
    if (IsRaised(next.v.element)) return true;
    const GumboVector& children = next.v.element.children;
    for (unsigned i = 0; i < children.length; ++i) {
      left.push_back(static_cast<const GumboNode*>(children.data[i]));
    }
  }
  return false;
}

// Returns true for an image of a letter, as "T" that begins a chapter, or a
// character that fonts lack.
bool IsLetterText(std::string_view text) {
  const std::u32string letters = ToUtf32(text);
  return !letters.empty() && letters.size() <= 2 &&
         std::any_of(letters.begin(), letters.end(), IsLetter);
}

}  // namespace

std::optional<std::string> ShortText(const GumboNode& node, size_t most) {
  std::string text;
  std::vector<const GumboNode*> left = {&node};
  for (size_t visited = 0; !left.empty(); ++visited) {
    if (text.size() > most || visited > 10 * kMaxMarkBytes) return std::nullopt;
    const GumboNode& next = *left.back();
    left.pop_back();
    if (IsText(next)) text += next.v.text.text;
    if (next.type != GUMBO_NODE_ELEMENT) continue;
    const GumboVector& children = next.v.element.children;
    if (children.length > 10 * kMaxMarkBytes) return std::nullopt;
    for (unsigned i = children.length; i-- > 0;) {
      left.push_back(static_cast<const GumboNode*>(children.data[i]));
    }
  }
  return text.size() > most ? std::nullopt : std::optional(std::move(text));
}

bool IsText(const GumboNode& node) {
  return node.type == GUMBO_NODE_TEXT || node.type == GUMBO_NODE_CDATA ||
         node.type == GUMBO_NODE_WHITESPACE;
}

Role RoleOf(const GumboElement& element) {
  if (HasHeadingRole(element)) return Role::kHeading;
  switch (element.tag) {
    case GUMBO_TAG_UNKNOWN:
      return RoleOfUnknown(element);
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
    case GUMBO_TAG_NOFRAMES:
    case GUMBO_TAG_RT:  // readings beside Chinese characters
    case GUMBO_TAG_RP:
      return Role::kLeftOut;
    case GUMBO_TAG_H1:
    case GUMBO_TAG_H2:
    case GUMBO_TAG_H3:
    case GUMBO_TAG_H4:
    case GUMBO_TAG_H5:
    case GUMBO_TAG_H6:
      return IsOfTitlePage(element) ? Role::kParagraph : Role::kHeading;
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
    case GUMBO_TAG_DIR:
    case GUMBO_TAG_MENU:
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
    case GUMBO_TAG_LISTING:
    case GUMBO_TAG_XMP:
    case GUMBO_TAG_PLAINTEXT:
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
    case GUMBO_TAG_CENTER:
    case GUMBO_TAG_LEGEND:
    case GUMBO_TAG_FRAMESET:
      return Role::kLine;
    default:
      return Role::kInline;
  }
}

int HeadingLevel(const GumboElement& element) {
  switch (element.tag) {
    case GUMBO_TAG_H1:
      return 1;
    case GUMBO_TAG_H2:
      return 2;
    case GUMBO_TAG_H3:
      return 3;
    case GUMBO_TAG_H4:
      return 4;
    case GUMBO_TAG_H5:
      return 5;
    case GUMBO_TAG_H6:
      return 6;
    default:
      break;
  }
  if (!HasHeadingRole(element)) return 0;
  return std::clamp(NumberAttribute(element, "aria-level").value_or(1), 1, 6);
}

bool IsSelfLink(const GumboNode& node) {
  if (node.v.element.tag != GUMBO_TAG_A) return false;
  const std::optional<std::string> text = ShortText(node, kMaxMarkBytes);
  if (!text.has_value()) return false;
  const std::string sign = OneLine(*text);
  return sign == "#" || sign == "¶" || sign == "§" || sign == "⁋" ||
         sign == "🔗";
}

std::string ItemMarker(int number, const GumboElement& list,
                       const GumboElement& item) {
  std::string style = ListStyleOf(item);
  if (style.empty()) style = ListStyleOf(list);
  if (style == "none") return {};
  std::string text;
  if (number > 0 && (style == "a" || style == "A")) {
    for (int left = number; left > 0; left = (left - 1) / 26) {
      text.insert(text.begin(), static_cast<char>(style[0] + (left - 1) % 26));
    }
  } else if (number > 0 && number < 4000 && (style == "i" || style == "I")) {
    text = RomanOf(number);
    if (style == "I") {
      std::transform(text.begin(), text.end(), text.begin(),
                     [](char c) { return static_cast<char>(c - 'a' + 'A'); });
    }
  } else {
    text = std::to_string(number);
  }
  return text + ". ";
}

std::optional<int> NumberAttribute(const GumboElement& element,
                                   const char* name) {
  const std::string_view text = Attribute(element, name);
  int number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  constexpr int kMost = 1'000'000'000;
  const bool is_number =
      error == std::errc() && number > -kMost && number < kMost;
  return is_number ? std::optional(number) : std::nullopt;
}

std::string_view Attribute(const GumboElement& element, const char* name) {
  const GumboAttribute* found = gumbo_get_attribute(&element.attributes, name);
  return found == nullptr ? std::string_view() : found->value;
}

bool HasWord(const GumboElement& element, const char* name,
             std::string_view word) {
  const std::string_view words = Attribute(element, name);
  for (size_t at = words.find(word); at != std::string_view::npos;
       at = words.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || IsSpace(words[at - 1])) &&
        (end == words.size() || IsSpace(words[end]))) {
      return true;
    }
  }
  return false;
}

// Returns true for an element that HTML does not know, by its name.
bool IsNamed(const GumboElement& element, std::string_view name) {
  const std::string_view tag(element.original_tag.data,
                             element.original_tag.length);
  return tag.size() > name.size() + 1 && tag.front() == '<' &&
         tag.substr(1, name.size()) == name &&
         std::string_view("> /\t\r\n").find(tag[name.size() + 1]) !=
             std::string_view::npos;
}

bool IsGutenbergFrame(const GumboElement& element) {
  const std::string_view id = Attribute(element, "id");
  return id == "pg-header" || id == "pg-footer";
}

bool IsNavigation(const GumboElement& element) {
  return element.tag == GUMBO_TAG_NAV ||
         Attribute(element, "role") == "navigation";
}

bool IsLeftOut(const GumboElement& element) {
  if (RoleOf(element) == Role::kLeftOut) return true;
  // The source of a formula, beside the formula.
  if (IsNamed(element, "annotation") || IsNamed(element, "annotation-xml")) {
    return true;
  }
  if (element.attributes.length == 0) return false;
  const std::string_view role = Attribute(element, "role");
  return role == "navigation" || role == "search" || role == "contentinfo" ||
         Attribute(element, "aria-hidden") == "true" ||
         gumbo_get_attribute(&element.attributes, "hidden") != nullptr ||
         (element.tag == GUMBO_TAG_A &&
          Attribute(element, "class") == "headerlink") ||
         (element.tag == GUMBO_TAG_SPAN &&
          (Attribute(element, "class") == "link-target" ||
           HasWord(element, "class", "mw-editsection"))) ||
         IsStyledAway(element) || IsGutenbergFrame(element);
}

bool IsRaised(const GumboElement& element) {
  if (element.tag == GUMBO_TAG_SUP) return true;
  if (element.attributes.length == 0) return false;
  if (HasWord(element, "class", "superscript") ||
      HasWord(element, "class", "super")) {
    return true;
  }
  return StyleOf(element).find("vertical-align:super") != std::string::npos;
}

bool IsNoteNumber(const GumboNode& node, bool is_raised) {
  const GumboElement& element = node.v.element;
  if (element.attributes.length == 0) return false;
  const bool is_link = element.tag == GUMBO_TAG_A;
  if (!is_link && element.tag != GUMBO_TAG_SPAN &&
      element.tag != GUMBO_TAG_SUP) {
    return false;
  }
  if (HasWord(element, "class", "brackets") ||
      HasWord(element, "epub:type", "noteref") ||
      HasWord(element, "role", "doc-noteref")) {
    return true;
  }
  const std::string_view link = Attribute(element, "href");
  if (!is_link || link.empty()) return false;
  const std::optional<std::string> text = ShortText(node, kMaxMarkBytes);
  if (!text.has_value()) return false;
  const size_t hash = link.find('#');
  const bool is_mark = IsNoteMarkText(*text);
  if (is_raised || HasRaised(node)) {
    return is_mark || (hash != std::string_view::npos && IsNoteLetter(*text));
  }
  return is_mark && hash != std::string_view::npos &&
         (IsNoteName(link.substr(hash + 1)) ||
          IsNoteName(Attribute(element, "class")));
}

std::optional<PageMark> PageMarkOf(const GumboNode& node) {
  const GumboElement& element = node.v.element;
  if (element.attributes.length == 0) return std::nullopt;
  const bool is_declared = HasWord(element, "epub:type", "pagebreak") ||
                           HasWord(element, "role", "doc-pagebreak");
  const std::string by_id = is_declared ? "" : PageNumberOfId(element);
  const bool has_class = !is_declared && HasPageClass(element);
  if (!is_declared && by_id.empty() && !has_class) return std::nullopt;
  const std::optional<std::string> text = ShortText(node, kMaxMarkBytes);
  if (is_declared) {
    const std::string shown = PageNumberIn(text.value_or(""));
    std::string number = PageNumberIn(Attribute(element, "aria-label"));
    if (number.empty()) number = PageNumberIn(Attribute(element, "title"));
    if (number.empty()) number = shown;
    return PageMark{std::move(number), !shown.empty()};
  }
  if (!text.has_value()) return std::nullopt;
  const bool is_empty = OneLine(*text).empty();
  std::string number = is_empty    ? by_id
                       : has_class ? PageNumberIn(*text)
                                   : std::string();
  if (number.empty()) return std::nullopt;
  return PageMark{std::move(number), !is_empty};
}

bool IsNoteMark(const GumboNode& node) {
  const GumboElement& element = node.v.element;
  if (IsNoteNumber(node, /*is_raised=*/false)) return true;
  const bool is_link =
      element.tag == GUMBO_TAG_A &&
      Attribute(element, "href").find('#') != std::string_view::npos;
  if (!is_link && element.tag != GUMBO_TAG_SUP) return false;
  const std::optional<std::string> text = ShortText(node, kMaxMarkBytes);
  if (!text.has_value() || !IsNoteMarkText(*text)) return false;
  // A power ("x2") has no link.
  return is_link || HasLink(node) ||
         std::isdigit(static_cast<unsigned char>(OneLine(*text)[0])) == 0;
}

std::string_view SignBefore(int part, const GumboElement& element) {
  if (element.tag_namespace != GUMBO_NAMESPACE_MATHML || part == 0) return {};
  if (IsNamed(element, "mfrac")) return "/";
  if (IsNamed(element, "msup") || IsNamed(element, "mover")) return "^";
  if (IsNamed(element, "msub") || IsNamed(element, "munder")) return "_";
  if (IsNamed(element, "msubsup") || IsNamed(element, "munderover")) {
    return part == 1 ? "_" : "^";
  }
  return {};
}

bool IsGroup(const GumboElement& element) {
  if (!IsNamed(element, "mrow")) return false;
  int count = 0;
  for (unsigned i = 0; i < element.children.length; ++i) {
    const auto* const child =
        static_cast<const GumboNode*>(element.children.data[i]);
    count += child->type == GUMBO_NODE_ELEMENT ? 1 : 0;
  }
  return count > 1;
}

std::string TextInLines(const GumboNode& node) {
  std::string text;
  std::vector<const GumboNode*> left = {&node};
  while (!left.empty()) {
    const GumboNode& next = *left.back();
    left.pop_back();
    if (IsText(next)) text += OneLine(next.v.text.text);
    if (next.type != GUMBO_NODE_ELEMENT) continue;
    if (RoleOf(next.v.element) != Role::kInline) text += "\n";
    const GumboVector& children = next.v.element.children;
    for (unsigned i = children.length; i-- > 0;) {
      left.push_back(static_cast<const GumboNode*>(children.data[i]));
    }
  }
  return text;
}

std::string_view AlternativeText(const GumboNode& node, bool is_heading) {
  const GumboElement& element = node.v.element;
  if (element.tag == GUMBO_TAG_MATH) return Attribute(element, "alttext");
  if (element.tag != GUMBO_TAG_IMG) return {};
  const std::string_view text = Attribute(element, "alt");
  return is_heading || IsLetterText(OneLine(text)) ? text : std::string_view();
}

}  // namespace tiercel::document
