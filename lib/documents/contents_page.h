#ifndef TIERCEL_LIB_DOCUMENTS_CONTENTS_PAGE_H_
#define TIERCEL_LIB_DOCUMENTS_CONTENTS_PAGE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "lib/documents/text_lines.h"

namespace tiercel::document {

// A table of contents in a plain text.
struct ContentsPage {
  size_t first_line = 0;         // line of its title
  size_t end_line = 0;           // behind its last
  std::vector<size_t> headings;  // lines of the text that it lists
  bool is_complete = false;      // nearly all lines that it lists were found
  // "Volume I", if only its title ("Contents of Volume I") names the volume.
  std::string volume;
};

// The tables of contents in a plain text: one of the whole text, one of each
// volume, or both.
struct Contents {
  std::vector<ContentsPage> pages;  // in the order of the text
  // Lines of the text that they list, and the heading of each volume.
  std::vector<size_t> headings;
};

// Finds a table by its title ("Contents", "目次") and by the entries behind
// that, most of which are lines of the text in the same order. A table in a
// chapter is left out if another stands before it.
Contents FindContents(const std::vector<TextLine>& lines);
// Returns true for a place of the text within one of its tables.
bool IsInTable(const std::vector<TextLine>& lines, const Contents& contents,
               size_t place);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_CONTENTS_PAGE_H_
