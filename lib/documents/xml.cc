#include "lib/documents/xml.h"

#include <libxml/HTMLparser.h>
#include <libxml/SAX2.h>
#include <libxml/parser.h>

#include <algorithm>
#include <climits>
#include <string>
#include <unordered_set>

#include "lib/documents/encoding.h"
#include "lib/documents/text_writer.h"

namespace tiercel::document {
namespace {

// Returns the place behind what begins at `at`: a quoted value, a comment, an
// instruction; npos if it does not end. Anything else is one character long.
size_t Skip(std::string_view xml, size_t at) {
  std::string_view end;
  if (xml[at] == '"' || xml[at] == '\'') {
    end = xml.substr(at, 1);
  } else if (xml.substr(at, 4) == "<!--") {
    end = "-->";
  } else if (xml.substr(at, 2) == "<?") {
    end = "?>";
  } else {
    return at + 1;
  }
  const size_t found = xml.find(end, at + 1);
  return found == std::string_view::npos ? found : found + end.size();
}

// Returns the names of the entities that the file declares itself.
std::unordered_set<std::string_view> DeclaredEntities(std::string_view xml) {
  constexpr std::string_view kEntity = "<!ENTITY ";
  std::unordered_set<std::string_view> names;
  const std::string_view declared = InternalSubset(xml);
  for (size_t at = declared.find(kEntity); at != std::string_view::npos;
       at = declared.find(kEntity, at + 1)) {
    const size_t begin = at + kEntity.size();
    names.insert(declared.substr(begin, declared.find(' ', begin) - begin));
  }
  return names;
}

// Returns a reference to an entity of HTML ("&eacute;") as a reference to its
// character ("&#233;"), or "" for any other.
std::string CharacterReference(std::string_view name) {
  for (const std::string_view known : {"amp", "lt", "gt", "quot", "apos"}) {
    if (name == known) return {};
  }
  const std::string key(name);
  const htmlEntityDesc* const entity =
      htmlEntityLookup(reinterpret_cast<const xmlChar*>(key.c_str()));
  return entity == nullptr ? std::string()
                           : "&#" + std::to_string(entity->value) + ";";
}

// Returns true if no reference to an entity or a character begins at `at`.
bool IsBareAmpersand(std::string_view xml, size_t at) {
  const size_t end = xml.find_first_of(";&<> \t\r\n", at + 1);
  return end == std::string_view::npos || xml[end] != ';' || end == at + 1;
}

// Replaces references to HTML's entities, outside of CDATA, unless the file
// declares them to be something else; and if it is to be repaired, signs that
// stand for themselves.
std::string WithoutHtmlEntities(std::string_view xml, XmlTree::Repair repair) {
  constexpr size_t kLongestName = 8;  // "thetasym"
  const std::unordered_set<std::string_view> declared = DeclaredEntities(xml);
  std::string out;
  size_t copied = 0;
  for (size_t at = xml.find_first_of("&<"); at < xml.size();
       at = xml.find_first_of("&<", at)) {
    if (xml[at] == '<') {
      const bool is_data = xml.substr(at, 9) == "<![CDATA[";
      at = is_data ? std::min(xml.find("]]>", at), xml.size()) : at + 1;
      continue;
    }
    if (repair == XmlTree::Repair::kParts && IsBareAmpersand(xml, at)) {
      out.append(xml, copied, at - copied).append("&amp;");
      copied = ++at;
      continue;
    }
    const size_t end = xml.find(';', at);
    if (end == std::string_view::npos) break;
    if (end - at - 1 > kLongestName) {
      ++at;
      continue;
    }
    const std::string_view name = xml.substr(at + 1, end - at - 1);
    const std::string character =
        declared.count(name) > 0 ? std::string() : CharacterReference(name);
    if (!character.empty()) {
      out.append(xml, copied, at - copied).append(character);
      copied = end + 1;
    }
    at = end + 1;
  }
  return out.append(xml, copied);
}

// Ignores declarations of entities whose text is in another file.
void DeclareEntity(void* context, const xmlChar* name, int type,
                   const xmlChar* public_id, const xmlChar* system_id,
                   xmlChar* content) {
  if (type != XML_INTERNAL_GENERAL_ENTITY) return;
  xmlSAX2EntityDecl(context, name, type, public_id, system_id, content);
}

}  // namespace

std::string_view InternalSubset(std::string_view page) {
  constexpr std::string_view kDoctype = "<!doctype";
  size_t at = 0;
  // Blanks, comments and the XML declaration may stand before it.
  while (Lowercase(page.substr(at, kDoctype.size())) != kDoctype) {
    if (at >= page.size()) return {};
    const bool may_be = IsSpace(page[at]) || page[at] == '<';
    const size_t next = may_be ? Skip(page, at) : std::string_view::npos;
    if (next == std::string_view::npos) return {};
    if (page[at] == '<' && next == at + 1) return {};
    at = next;
  }
  size_t begin = std::string_view::npos;
  for (at += kDoctype.size(); at < page.size(); at = Skip(page, at)) {
    const bool is_open = begin != std::string_view::npos;
    if (!is_open && page[at] == '>') return {};
    if (!is_open && page[at] == '[') begin = at;
    if (is_open && page[at] == ']') return page.substr(begin, at + 1 - begin);
  }
  return {};
}

std::string_view View(const xmlChar* text) {
  return text == nullptr ? std::string_view()
                         : reinterpret_cast<const char*>(text);
}

XmlTree::XmlTree(std::string_view bytes, Repair repair) {
  const std::string xml = WithoutHtmlEntities(bytes, repair);
  if (xml.size() > INT_MAX) return;
  static const bool initialized = [] {
    xmlInitParser();
    return true;
  }();
  xmlParserCtxt* const context = initialized ? xmlNewParserCtxt() : nullptr;
  if (context == nullptr) return;
  context->sax->entityDecl = DeclareEntity;
  int options = XML_PARSE_NOENT | XML_PARSE_NONET | XML_PARSE_NOERROR |
                XML_PARSE_NOWARNING | XML_PARSE_IGNORE_ENC | XML_PARSE_NOCDATA;
  if (repair == Repair::kParts) options |= XML_PARSE_RECOVER;
  document_ =
      xmlCtxtReadMemory(context, xml.data(), static_cast<int>(xml.size()),
                        /*URL=*/nullptr, "UTF-8", options);
  xmlFreeParserCtxt(context);
}

XmlTree::~XmlTree() { xmlFreeDoc(document_); }

const xmlNode* XmlTree::root() const {
  return document_ == nullptr ? nullptr : xmlDocGetRootElement(document_);
}

std::string_view LocalName(const xmlNode& node) {
  if (node.type != XML_ELEMENT_NODE) return {};
  const std::string_view name = View(node.name);
  // The prefix is part of the name if the file does not declare it.
  return name.substr(name.rfind(':') + 1);
}

std::string Attribute(const xmlNode* element, std::string_view name) {
  if (element == nullptr || element->type != XML_ELEMENT_NODE) return {};
  for (const xmlAttr* attribute = element->properties; attribute != nullptr;
       attribute = attribute->next) {
    const std::string_view full = View(attribute->name);
    if (full.substr(full.rfind(':') + 1) != name) continue;
    std::string value;
    for (const xmlNode* part = attribute->children; part != nullptr;
         part = part->next) {
      value += View(part->content);
    }
    return value;
  }
  return {};
}

const xmlNode* Next(const xmlNode* root, const xmlNode* node) {
  const bool is_element = node->type == XML_ELEMENT_NODE;
  if (is_element && node->children != nullptr) return node->children;
  while (node != root && node->next == nullptr) node = node->parent;
  return node == root ? nullptr : node->next;
}

const xmlNode* Find(const xmlNode* root, std::string_view name) {
  const xmlNode* node = root;
  while (node != nullptr && LocalName(*node) != name) node = Next(root, node);
  return node;
}

const xmlNode* Child(const xmlNode* node, std::string_view name) {
  if (node == nullptr) return nullptr;
  for (const xmlNode* child = node->children; child != nullptr;
       child = child->next) {
    if (LocalName(*child) == name) return child;
  }
  return nullptr;
}

std::string TextOf(const xmlNode* root) {
  std::string text;
  for (const xmlNode* node = root; node != nullptr; node = Next(root, node)) {
    if (node->type == XML_TEXT_NODE || node->type == XML_CDATA_SECTION_NODE) {
      text += View(node->content);
    }
  }
  return OneLine(text);
}

}  // namespace tiercel::document
