#include "lib/documents/gzip.h"

#include <zlib.h>

#include "lib/documents/error.h"

namespace tiercel::document {
namespace {

class Inflater {
 public:
  Inflater() : ready_(inflateInit2(&stream_, kGzipAlone) == Z_OK) {}
  ~Inflater() {
    if (ready_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Unpacks the member that `packed` begins with to the end of `text`, and
  // takes it off. Returns false for what is damaged, or if the text has more
  // than kMaxFileBytes.
  bool Unpack(std::string_view* packed, std::string* text) {
    if (!ready_ || inflateReset(&stream_) != Z_OK) return false;
    // zlib does not write to its input.
    stream_.next_in =
        reinterpret_cast<Bytef*>(const_cast<char*>(packed->data()));
    stream_.avail_in = static_cast<uInt>(packed->size());
    int state = Z_OK;
    while (state == Z_OK && text->size() <= kMaxFileBytes) {
      const size_t filled = text->size();
      text->resize(filled + kStep);
      stream_.next_out = reinterpret_cast<Bytef*>(text->data() + filled);
      stream_.avail_out = static_cast<uInt>(kStep);
      state = inflate(&stream_, Z_NO_FLUSH);
      text->resize(filled + kStep - stream_.avail_out);
    }
    packed->remove_prefix(packed->size() - stream_.avail_in);
    return state == Z_STREAM_END;
  }

 private:
  static constexpr int kGzipAlone = MAX_WBITS + 16;
  static constexpr size_t kStep = size_t{1} << 16;

  z_stream stream_ = {};
  const bool ready_;
};

}  // namespace

bool StartsLikeGzip(std::string_view bytes) {
  return bytes.substr(0, 3) == "\x1F\x8B\x08";
}

std::variant<std::string, Error> UnpackGzip(const std::string& name,
                                            std::string_view bytes) {
  Inflater inflater;
  std::string text;
  do {
    const bool whole = inflater.Unpack(&bytes, &text);
    if (text.size() > kMaxFileBytes) {
      return InputError(
          name, "zip_bomb",
          "unpacks to more than " + std::to_string(kMaxFileBytes) + " bytes");
    }
    if (!whole) {
      return InputError(name, "invalid_archive",
                        "is a gzip file that is damaged or cut");
    }
    // Other bytes behind the last member, mostly zeros, are no part of it.
  } while (StartsLikeGzip(bytes));
  return text;
}

}  // namespace tiercel::document
