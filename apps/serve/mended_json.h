#ifndef TIERCEL_APPS_SERVE_MENDED_JSON_H_
#define TIERCEL_APPS_SERVE_MENDED_JSON_H_

#include <string>
#include <string_view>

namespace tiercel::serve {

// Returns a JSON text with something else in place of what no text or number
// can hold, so that the rest can be read: U+FFFD for half of a surrogate pair
// and for bytes that are not UTF-8, blanks for control characters within
// strings, 0 for a number beyond those of a double.
std::string MendedJson(std::string_view text);

}  // namespace tiercel::serve

#endif  // TIERCEL_APPS_SERVE_MENDED_JSON_H_
