#ifndef TIERCEL_LIB_DOCUMENTS_FB2_H_
#define TIERCEL_LIB_DOCUMENTS_FB2_H_

#include <string>
#include <string_view>

#include "lib/documents/document.h"

namespace tiercel::document {

// Returns true if a file begins as FictionBook does, whatever its charset.
bool StartsLikeFb2(std::string_view bytes);

// Reads FictionBook 2 (FB2): the text of its bodies, notes last; sections with
// a title are sections, by their nesting. Errors: invalid_fb2 if the XML cannot
// be read or has no body; html_too_complex.
Result ReadFb2(const std::string& name, std::string_view bytes);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_FB2_H_
