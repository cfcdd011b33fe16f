#include "lib/documents/href.h"

#include <algorithm>
#include <vector>

#include "lib/documents/encoding.h"

namespace tiercel::document {
namespace {

bool HasScheme(std::string_view href) {
  const size_t colon = href.find_first_of(":/?#");
  return colon != std::string_view::npos && href[colon] == ':';
}

}  // namespace

std::string PercentDecoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const int byte = text[i] == '%' ? HexByte(text.substr(i + 1)) : -1;
    if (byte > 0) {
      decoded.push_back(static_cast<char>(byte));
      i += 2;
    } else {
      decoded.push_back(text[i]);
    }
  }
  return decoded;
}

std::optional<std::string> PathFrom(std::string_view base,
                                    std::string_view path) {
  std::string whole(path);
  std::replace(whole.begin(), whole.end(), '\\', '/');
  if (whole.substr(0, 2) == "//") return std::nullopt;
  const size_t folder = base.rfind('/');
  if (whole.substr(0, 1) != "/" && folder != std::string_view::npos) {
    whole.insert(0, base.substr(0, folder + 1));
  }
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= whole.size();) {
    const size_t end = std::min(whole.find('/', begin), whole.size());
    const std::string_view part =
        std::string_view(whole).substr(begin, end - begin);
    begin = end + 1;
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(part);
    } else if (parts.empty()) {
      return std::nullopt;
    } else {
      parts.pop_back();
    }
  }
  std::string resolved;
  for (const std::string_view part : parts) {
    if (!resolved.empty()) resolved.push_back('/');
    resolved += part;
  }
  return resolved;
}

std::optional<Place> Resolve(std::string_view base, std::string_view href) {
  if (HasScheme(href)) return std::nullopt;
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
  std::optional<std::string> resolved = PathFrom(base, path);
  if (!resolved.has_value()) return std::nullopt;
  place.path = *std::move(resolved);
  return place;
}

}  // namespace tiercel::document
