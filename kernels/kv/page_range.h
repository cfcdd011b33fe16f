#ifndef TIERCEL_KERNELS_KV_PAGE_RANGE_H_
#define TIERCEL_KERNELS_KV_PAGE_RANGE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace tiercel {

// Whether pages first..last are among the `num_pages` from page `first_page`
// on, and none is null: the error of the op that reads them all
// (invalid_position).
absl::Status CheckPageRange(std::string_view op, const std::byte* const* pages,
                            int64_t first_page, int64_t num_pages,
                            int64_t first, int64_t last);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_PAGE_RANGE_H_
