#include "lib/documents/href.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace tiercel::document {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const int lower = std::tolower(static_cast<unsigned char>(c));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// "%00" stays as it is written, since a zero byte would end the name elsewhere.
std::string PercentDecoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
        HexDigit(text[i + 2]) >= 0 && text.substr(i + 1, 2) != "00") {
      decoded.push_back(static_cast<char>(HexDigit(text[i + 1]) * 16 +
                                          HexDigit(text[i + 2])));
      i += 2;
    } else {
      decoded.push_back(text[i]);
    }
  }
  return decoded;
}

bool HasScheme(std::string_view href) {
  const size_t colon = href.find_first_of(":/?#");
  return colon != std::string_view::npos && href[colon] == ':';
}

}  // namespace

std::optional<Place> Resolve(std::string_view base, std::string_view href) {
  if (HasScheme(href) || href.substr(0, 1) == "/") return std::nullopt;
  const size_t hash = std::min(href.find('#'), href.size());
  Place place;
  if (hash < href.size()) {
    place.fragment = PercentDecoded(href.substr(hash + 1));
  }
  const std::string path =
      PercentDecoded(href.substr(0, std::min(href.find('?'), hash)));
  if (path.empty()) {
    place.path = std::string(base);
    return place;
  }
  const size_t folder = base.rfind('/');
  const std::string whole = (folder == std::string_view::npos
                                 ? std::string()
                                 : std::string(base.substr(0, folder + 1))) +
                            path;
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= whole.size();) {
    const size_t end = std::min(whole.find('/', begin), whole.size());
    std::string part = whole.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(std::move(part));
    } else if (parts.empty()) {
      return std::nullopt;
    } else {
      parts.pop_back();
    }
  }
  for (const std::string& part : parts) {
    if (!place.path.empty()) place.path.push_back('/');
    place.path += part;
  }
  return place;
}

}  // namespace tiercel::document
