#ifndef TIERCEL_KERNELS_KV_PAGE_RANGE_H_
#define TIERCEL_KERNELS_KV_PAGE_RANGE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device/op.h"
#include "kernels/device/stream.h"
#include "kernels/kv/device_pages.h"
#include "lib/status/status_macros.h"

namespace tiercel {

// Checks that a page begins at a multiple of kPageAlignment; `op` is named in
// the error. Errors: invalid_page.
absl::Status CheckPageStart(std::string_view op,
                            DevicePtr<const std::byte> start, int64_t page);

// Checks that pages first..last are among the `num_pages` from page
// `first_page` on, none is null and all are aligned; `op` is named in the
// error. Errors: invalid_position, invalid_page.
absl::Status CheckPageRange(std::string_view op,
                            const DevicePtr<std::byte>* pages,
                            int64_t first_page, int64_t num_pages,
                            int64_t first, int64_t last);

// Keeps the list of pages of an op that is done later (OpBodies::keep).
template <typename Params>
void KeepPages(Params& p, HostLists& lists) {
  p.pages = lists.Keep(p.pages, p.num_pages);
}

// Sends the pages first..last of an op's parameters, for a kernel. Errors:
// out_of_memory, device_failed.
template <typename Params>
absl::StatusOr<DevicePages> SendPages(Stream& stream, const Params& p,
                                      int64_t first, int64_t last) {
  ASSIGN_OR_RETURN(const auto list,
                   SendToScratch(stream, p.pages + (first - p.first_page),
                                 last - first + 1));
  return DevicePages{list, first};
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_PAGE_RANGE_H_
