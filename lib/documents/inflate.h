#ifndef TIERCEL_LIB_DOCUMENTS_INFLATE_H_
#define TIERCEL_LIB_DOCUMENTS_INFLATE_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace tiercel::document {

enum class Wrapping { kZlib, kGzip };  // RFC 1950, a member of RFC 1952

// Unpacks the stream that `packed` begins with to the end of `text`, and takes
// it off. Returns false if it is damaged or cut, or once `text` has `most`
// bytes or some more; what was unpacked stays in `text`.
bool Inflate(Wrapping wrapping, size_t most, std::string_view* packed,
             std::string* text);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_INFLATE_H_
