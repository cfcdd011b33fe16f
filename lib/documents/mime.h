#ifndef TIERCEL_LIB_DOCUMENTS_MIME_H_
#define TIERCEL_LIB_DOCUMENTS_MIME_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tiercel::document {

// A part of a mail, or all of it (RFC 2045). Its body points into the mail.
struct MimePart {
  std::string type;      // "text/html", in lower case; empty if none is given
  std::string charset;   // as it is given; or empty
  std::string boundary;  // between its own parts
  std::string start;     // the identifier of the one that is shown first
  std::string encoding;  // its body's, in lower case: "base64"
  std::string id;        // without the brackets around it; or empty
  std::string location;  // the address that it has been fetched from
  bool has_version = false;  // "MIME-Version"
  std::string_view body;
};

// Returns nothing if `mail` does not begin with the fields of a header.
std::optional<MimePart> ParseMime(std::string_view mail);

// Returns the parts of a part that has several, at most `most`.
std::vector<MimePart> PartsOf(const MimePart& part, size_t most);

// Returns the body of a part, decoded: quoted-printable, base64, or as it is.
std::string BodyOf(const MimePart& part);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_MIME_H_
