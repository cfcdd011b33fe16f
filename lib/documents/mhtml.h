#ifndef TIERCEL_LIB_DOCUMENTS_MHTML_H_
#define TIERCEL_LIB_DOCUMENTS_MHTML_H_

#include <string>
#include <string_view>

#include "lib/documents/document.h"

namespace tiercel::document {

// Returns true for a mail, and for a web page with its pictures in the form of
// one (RFC 2557), as browsers save it. Its header says that it has a page, a
// text or parts; without the extension .mht, .mhtml or .eml it also says that
// it is a mail's (MIME-Version), or how its body is packed.
bool IsMhtml(const std::string& name, std::string_view bytes);

// Reads such a page as html.h does: the part that the mail says is the first to
// be shown, in the charset that the part has, else in the one that the page
// declares. The pages in the frames of a frame set follow it, as far as they
// are parts of the mail. Nothing is fetched. Without a page it reads the first
// part that is plain text.
//
// Errors: invalid_mhtml (no part of it is a page or a text); not_text;
// html_too_complex; document_too_large.
Result ReadMhtml(const std::string& name, std::string_view bytes);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_MHTML_H_
