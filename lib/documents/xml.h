#ifndef TIERCEL_LIB_DOCUMENTS_XML_H_
#define TIERCEL_LIB_DOCUMENTS_XML_H_

#include <libxml/tree.h>

#include <string>
#include <string_view>

namespace tiercel::document {

// XML that libxml2 has parsed. The entities that the file declares itself are
// replaced by their text, within libxml2's limits on what they may swell to,
// and so are HTML's (&eacute;), which files of books use without declaring
// them. Entities outside of the file are not read, nor is a DTD.
class XmlTree {
 public:
  enum class Repair {
    kNone,   // a file that is not well-formed has no root
    kParts,  // it is read as far as it makes sense
  };

  // `bytes` are in UTF-8 whatever they declare.
  XmlTree(std::string_view bytes, Repair repair);
  ~XmlTree();
  XmlTree(const XmlTree&) = delete;
  XmlTree& operator=(const XmlTree&) = delete;

  // Null if nothing could be read.
  const xmlNode* root() const;

 private:
  xmlDoc* document_ = nullptr;
};

// Returns the declarations in a page's document type, with the brackets around
// them: "[<!ENTITY who 'he'>]". Empty if the page begins with no document type,
// or that has none.
std::string_view InternalSubset(std::string_view page);

// "" for null.
std::string_view View(const xmlChar* text);

// "creator" for <dc:creator>: a file may choose its prefixes. Empty if the node
// is no element.
std::string_view LocalName(const xmlNode& node);

// Returns the value of the attribute with a local name; "" if there is none.
std::string Attribute(const xmlNode* element, std::string_view name);

// Returns the node that follows `node` in the order of the file, within `root`;
// null at its end. It does not recurse.
const xmlNode* Next(const xmlNode* root, const xmlNode* node);

// Return null if there is no such element, or `node` is null: the first below
// or at `root`, and the first child of a node.
const xmlNode* Find(const xmlNode* root, std::string_view name);
const xmlNode* Child(const xmlNode* node, std::string_view name);

// Returns all text in an element, on one line; "" for null.
std::string TextOf(const xmlNode* root);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_XML_H_
