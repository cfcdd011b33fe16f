#ifndef TIERCEL_LIB_DOCUMENTS_HTML_TREE_H_
#define TIERCEL_LIB_DOCUMENTS_HTML_TREE_H_

#include <memory>
#include <string_view>

#include "gumbo.h"

namespace tiercel::document {

// A page parsed by gumbo, within limits. The parser itself has none: some
// thousand misnested formatting tags make it build a billion nodes, a hundred
// thousand nested ones make it slow, and destroying a deep tree recurses. So it
// allocates from a heap of ours, which stops it when memory or processor time
// is spent, and frees everything in one loop.
class HtmlTree {
 public:
  // `html` outlives the tree: its nodes point into it.
  explicit HtmlTree(std::string_view html);
  ~HtmlTree();
  HtmlTree(const HtmlTree&) = delete;
  HtmlTree& operator=(const HtmlTree&) = delete;

  // The document's root element; null if a limit was met.
  const GumboNode* root() const { return root_; }

 private:
  class Heap;
  std::unique_ptr<Heap> heap_;
  const GumboNode* root_ = nullptr;
};

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_HTML_TREE_H_
