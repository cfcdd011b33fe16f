#include "kernels/kv/page_range.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/device/device_memory.h"
#include "kernels/kv/kv_layout.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

// The pages of a pool are contiguous from the start of its memory, so the first
// one is aligned.
static_assert(kDeviceAlignment % kPageAlignment == 0);

absl::Status CheckPageStart(std::string_view op,
                            DevicePtr<const std::byte> start, int64_t page) {
  const auto past = reinterpret_cast<uintptr_t>(start.raw()) % kPageAlignment;
  if (past == 0) return absl::OkStatus();
  return UsageError(
      "invalid_page",
      absl::StrCat(std::string(op), ": page ", page, " begins ", past,
                   " bytes past a multiple of ", kPageAlignment,
                   "; need all pages to begin at one"));
}

absl::Status CheckPageRange(std::string_view op,
                            const DevicePtr<std::byte>* pages,
                            int64_t first_page, int64_t num_pages,
                            int64_t first, int64_t last) {
  if (first < first_page || last - first_page >= num_pages) {
    return UsageError(
        "invalid_position",
        absl::StrCat(std::string(op), ": got ", num_pages, " pages from page ",
                     first_page, "; need pages ", first, " to ", last));
  }
  for (int64_t page = first; page <= last; ++page) {
    const DevicePtr<std::byte> start = pages[page - first_page];
    if (start == nullptr) {
      return UsageError(
          "invalid_position",
          absl::StrCat(std::string(op), ": page ", page,
                       " is null; need pages ", first, " to ", last));
    }
    RETURN_IF_ERROR(CheckPageStart(op, start, page));
  }
  return absl::OkStatus();
}

}  // namespace tiercel
