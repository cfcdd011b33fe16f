#ifndef TIERCEL_LIB_TEXT_QUOTE_H_
#define TIERCEL_LIB_TEXT_QUOTE_H_

#include <string>
#include <string_view>

namespace tiercel {

// Quotes `text` from a file for a message: in quotes, without control bytes or
// broken UTF-8, and cut after 64 bytes.
std::string Quoted(std::string_view text);

// Returns true if `text` is UTF-8 (RFC 3629: shortest form, no surrogates).
bool IsValidUtf8(std::string_view text);

}  // namespace tiercel

#endif  // TIERCEL_LIB_TEXT_QUOTE_H_
