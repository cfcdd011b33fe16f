#include "lib/documents/xhtml.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "lib/documents/xml.h"

namespace tiercel::document {
namespace {

// A tree of XML takes ten times the bytes of a page or more.
constexpr size_t kMostParsed = size_t{8} << 20;

bool IsVoid(std::string_view tag) {
  constexpr std::array<std::string_view, 14> kVoid = {
      "area",  "base", "br",   "col",   "embed",  "hr",    "img",
      "input", "link", "meta", "param", "source", "track", "wbr"};
  return std::find(kVoid.begin(), kVoid.end(), tag) != kVoid.end();
}

void AppendAttributes(const xmlNode& element, std::string* html) {
  for (const xmlAttr* attribute = element.properties; attribute != nullptr;
       attribute = attribute->next) {
    html->push_back(' ');
    if (attribute->ns != nullptr) {
      const std::string_view space = View(attribute->ns->href);
      if (space == "http://www.idpf.org/2007/ops") html->append("epub:");
      if (space == "http://www.w3.org/XML/1998/namespace") html->append("xml:");
    }
    html->append(View(attribute->name)).append("=\"");
    for (const xmlNode* part = attribute->children; part != nullptr;
         part = part->next) {
      AppendEscaped(View(part->content), html);
    }
    html->push_back('"');
  }
}

// The name of an element in HTML. Of elements whose text HTML would not parse
// it is another's that means the same.
std::string_view NameInHtml(const xmlNode& element) {
  const std::string_view name = LocalName(element);
  return name == "xmp" || name == "plaintext" ? "pre" : name;
}

// Returns true for elements in which HTML takes everything for text; a reader
// shows none of them.
bool IsRaw(std::string_view name) {
  constexpr std::array<std::string_view, 6> kRaw = {
      "script", "style", "iframe", "noscript", "noembed", "noframes"};
  return std::find(kRaw.begin(), kRaw.end(), name) != kRaw.end();
}

void AppendStart(const xmlNode& element, std::string* html) {
  const std::string_view name = NameInHtml(element);
  html->append("<").append(name);
  AppendAttributes(element, html);
  html->push_back('>');
  // HTML drops a line end there.
  if (name == "pre" || name == "textarea") html->push_back('\n');
}

void AppendEnd(const xmlNode& element, std::string* html) {
  const std::string_view name = NameInHtml(element);
  if (!IsVoid(name)) html->append("</").append(name).append(">");
}

std::string AsHtml(const xmlNode* root) {
  std::string html = "<!DOCTYPE html>";
  const xmlNode* node = root;
  while (true) {
    bool enters = false;
    if (node->type == XML_ELEMENT_NODE && !IsRaw(LocalName(*node))) {
      AppendStart(*node, &html);
      enters = node->children != nullptr;
      if (!enters) AppendEnd(*node, &html);
    } else if (node->type == XML_TEXT_NODE) {
      AppendEscaped(View(node->content), &html);
    }
    if (enters) {
      node = node->children;
      continue;
    }
    while (node != root && node->next == nullptr) {
      node = node->parent;
      AppendEnd(*node, &html);
    }
    if (node == root) return html;
    node = node->next;
  }
}

// Opens and closes the elements of a page that is not well-formed: "<p/>"
// becomes "<p></p>", since HTML would take "<p/>" for the start of a paragraph.
std::string WithEndTags(std::string_view xhtml) {
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

}  // namespace

void AppendEscaped(std::string_view text, std::string* html) {
  for (const char c : text) {
    switch (c) {
      case '&':
        html->append("&amp;");
        break;
      case '<':
        html->append("&lt;");
        break;
      case '"':
        html->append("&quot;");
        break;
      default:
        html->push_back(c);
    }
  }
}

std::string XhtmlAsHtml(std::string_view xhtml) {
  if (xhtml.size() <= kMostParsed) {
    const XmlTree xml(xhtml, XmlTree::Repair::kNone);
    if (xml.root() != nullptr) return AsHtml(xml.root());
  }
  return WithEndTags(WithoutDeclarations(xhtml));
}

std::string WithoutDeclarations(std::string_view page) {
  const std::string_view declarations = InternalSubset(page);
  std::string rest(page);
  if (!declarations.empty()) {
    rest.erase(static_cast<size_t>(declarations.data() - page.data()),
               declarations.size());
  }
  return rest;
}

}  // namespace tiercel::document
