#ifndef TIERCEL_LIB_DOCUMENTS_PAGE_NUMBERS_H_
#define TIERCEL_LIB_DOCUMENTS_PAGE_NUMBERS_H_

#include <cstddef>
#include <vector>

#include "lib/documents/text_lines.h"

namespace tiercel::document {

// Returns true if lines that are numbers, each one more than that before it,
// number the pages of a printed book and not its chapters: many stand within a
// sentence, or they are many and as far apart as pages are.
bool ArePageNumbers(const std::vector<TextLine>& lines,
                    const std::vector<size_t>& numbers);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_PAGE_NUMBERS_H_
