#include "lib/documents/book_files.h"

#include <algorithm>
#include <optional>
#include <set>

#include "lib/documents/encoding.h"
#include "lib/documents/error.h"
#include "lib/documents/file.h"
#include "lib/documents/href.h"
#include "lib/documents/unicode.h"

namespace tiercel::document {

std::string ShownPath(std::string_view path) {
  std::string shown = ValidUtf8(path.substr(0, 80));
  ReplaceControls(&shown);
  std::replace(shown.begin(), shown.end(), '\n', ' ');
  return shown;
}

void BookFiles::Add(const std::string& path, int64_t number) {
  numbers_.emplace(CaseFolded(path), number);
  // Some programs pack files by the names that links have for them.
  numbers_.emplace(CaseFolded(PercentDecoded(path)), number);
}

Error BookFiles::NoSuchFile(const std::string& path) const {
  return InputError(name_, "invalid_archive",
                    "has no file '" + ShownPath(path) + "'");
}

void BookFiles::FindRoot(const std::string& path) {
  if (Has(path)) return;
  const std::string end = "/" + CaseFolded(path);
  std::optional<std::string> found;
  for (const auto& [key, number] : numbers_) {
    const bool ends =
        key.size() > end.size() &&
        key.compare(key.size() - end.size(), end.size(), end) == 0;
    if (!ends) continue;
    std::string root = key.substr(0, key.size() - end.size() + 1);
    const auto rank = [](const std::string& folder) {
      return std::pair(std::count(folder.begin(), folder.end(), '/'), folder);
    };
    if (!found.has_value() || rank(root) < rank(*found)) {
      found = std::move(root);
    }
  }
  root_ = found.value_or("");
}

int64_t BookFiles::NumberOf(const std::string& path) const {
  const auto found = numbers_.find(root_ + CaseFolded(path));
  return found == numbers_.end() ? -1 : found->second;
}

std::vector<std::string> BookFiles::PathsWith(
    const std::string& extension) const {
  std::set<int64_t> found;
  std::vector<std::string> paths;
  for (const auto& [key, number] : numbers_) {
    if (HasExtension(key, {extension}) && found.insert(number).second) {
      paths.push_back(key.substr(root_.size()));
    }
  }
  return paths;
}

}  // namespace tiercel::document
