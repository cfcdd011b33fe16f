#ifndef TIERCEL_LIB_DOCUMENTS_CONTENTS_PAGE_H_
#define TIERCEL_LIB_DOCUMENTS_CONTENTS_PAGE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "lib/documents/text_lines.h"

namespace tiercel::document {

// The table of contents in a plain text.
struct ContentsPage {
  size_t first_line = 0;  // line of its title
  size_t end_line = 0;  // behind its last; equal to first_line if there is none
  std::vector<size_t> headings;  // lines of the text that it lists
  bool is_complete = false;      // nearly all lines that it lists were found
};

// Finds it by its title ("Contents", "目次") and by the entries behind that,
// most of which are lines of the text in the same order.
ContentsPage FindContents(const std::vector<TextLine>& lines);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_CONTENTS_PAGE_H_
