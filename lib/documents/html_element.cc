#include "lib/documents/html_element.h"

#include <cstddef>

#include "lib/documents/text_writer.h"

namespace tiercel::document {

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
    case GUMBO_TAG_RT:  // readings beside Chinese characters
    case GUMBO_TAG_RP:
      return Role::kLeftOut;
    case GUMBO_TAG_H1:
    case GUMBO_TAG_H2:
    case GUMBO_TAG_H3:
    case GUMBO_TAG_H4:
    case GUMBO_TAG_H5:
    case GUMBO_TAG_H6:
      return Role::kHeading;
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

int HeadingLevel(GumboTag tag) {
  switch (tag) {
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
      return 0;
  }
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

bool IsGutenbergFrame(const GumboElement& element) {
  const std::string_view id = Attribute(element, "id");
  return id == "pg-header" || id == "pg-footer";
}

bool IsLeftOut(const GumboElement& element) {
  if (RoleOf(element.tag) == Role::kLeftOut) return true;
  if (element.attributes.length == 0) return false;
  const std::string_view role = Attribute(element, "role");
  return role == "navigation" || role == "search" || role == "contentinfo" ||
         Attribute(element, "aria-hidden") == "true" ||
         gumbo_get_attribute(&element.attributes, "hidden") != nullptr ||
         (element.tag == GUMBO_TAG_A &&
          Attribute(element, "class") == "headerlink") ||
         (element.tag == GUMBO_TAG_SPAN &&
          Attribute(element, "class") == "link-target") ||
         IsGutenbergFrame(element);
}

bool IsNoteNumber(const GumboElement& element) {
  if (element.attributes.length == 0) return false;
  if (element.tag != GUMBO_TAG_A && element.tag != GUMBO_TAG_SPAN) return false;
  return HasWord(element, "class", "brackets") ||
         HasWord(element, "epub:type", "noteref") ||
         HasWord(element, "role", "doc-noteref");
}

bool IsPageBreak(const GumboElement& element) {
  return element.attributes.length > 0 &&
         (HasWord(element, "epub:type", "pagebreak") ||
          HasWord(element, "role", "doc-pagebreak"));
}

}  // namespace tiercel::document
