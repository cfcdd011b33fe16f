#include "kernels/kv/page_range.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/base/error.h"

namespace tiercel {

absl::Status CheckPageRange(std::string_view op, const std::byte* const* pages,
                            int64_t first_page, int64_t num_pages,
                            int64_t first, int64_t last) {
  if (first < first_page || last - first_page >= num_pages) {
    return UsageError(
        "invalid_position",
        absl::StrCat(std::string(op), ": got ", num_pages, " pages from page ",
                     first_page, "; need pages ", first, " to ", last));
  }
  for (int64_t page = first; page <= last; ++page) {
    if (pages[page - first_page] != nullptr) continue;
    return UsageError(
        "invalid_position",
        absl::StrCat(std::string(op), ": page ", page, " is null; need pages ",
                     first, " to ", last));
  }
  return absl::OkStatus();
}

}  // namespace tiercel
