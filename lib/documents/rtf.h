#ifndef TIERCEL_LIB_DOCUMENTS_RTF_H_
#define TIERCEL_LIB_DOCUMENTS_RTF_H_

#include <string>
#include <string_view>

#include "lib/documents/document.h"

namespace tiercel::document {

bool StartsLikeRtf(std::string_view bytes);

// Reads Rich Text Format. Headings are paragraphs of the styles "heading 1" to
// "heading 9", of those that are based on them, and of an outline level;
// without any, lines that look so (plain_text.h). Title and author are those of
// its information, else the paragraph of the style "Title"; the language is
// that of most of the text. A footnote follows its paragraph, and "[1]" refers
// to it; so does the text of a box. Pictures, running heads, comments, and text
// that is hidden or deleted are left out.
//
// Errors: rtf_too_complex (groups nested deeper than any writer nests them).
Result ReadRtf(const std::string& name, std::string_view bytes);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_RTF_H_
