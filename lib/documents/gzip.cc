#include "lib/documents/gzip.h"

#include "lib/documents/error.h"
#include "lib/documents/inflate.h"

namespace tiercel::document {

bool StartsLikeGzip(std::string_view bytes) {
  return bytes.substr(0, 3) == "\x1F\x8B\x08";
}

std::variant<std::string, Error> UnpackGzip(const std::string& name,
                                            std::string_view bytes) {
  std::string text;
  do {
    const bool whole =
        Inflate(Wrapping::kGzip, kMaxFileBytes + 1, &bytes, &text);
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
