#include "lib/documents/inflate.h"

#include <zlib.h>

#include <algorithm>

namespace tiercel::document {

bool Inflate(Wrapping wrapping, size_t most, std::string_view* packed,
             std::string* text) {
  constexpr int kGzipAlone = 16;  // as zlib asks for it
  constexpr size_t kStep = size_t{1} << 16;
  constexpr size_t kMostPacked = size_t{1} << 30;
  z_stream stream = {};
  const int bits =
      wrapping == Wrapping::kGzip ? MAX_WBITS + kGzipAlone : MAX_WBITS;
  if (inflateInit2(&stream, bits) != Z_OK) return false;
  // zlib does not write to its input.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed->data()));
  stream.avail_in = static_cast<uInt>(std::min(packed->size(), kMostPacked));
  int state = Z_OK;
  while (state == Z_OK && text->size() < most) {
    const size_t filled = text->size();
    text->resize(filled + kStep);
    stream.next_out = reinterpret_cast<Bytef*>(text->data() + filled);
    stream.avail_out = static_cast<uInt>(kStep);
    state = inflate(&stream, Z_NO_FLUSH);
    text->resize(filled + kStep - stream.avail_out);
  }
  packed->remove_prefix(stream.total_in);
  inflateEnd(&stream);
  return state == Z_STREAM_END;
}

}  // namespace tiercel::document
