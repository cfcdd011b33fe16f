#ifndef TIERCEL_OFFLOAD_DISK_PAGE_SUM_H_
#define TIERCEL_OFFLOAD_DISK_PAGE_SUM_H_

#include <cstddef>
#include <cstdint>

namespace tiercel {

// The checksum of a page that is on disk: XXH3-64.
uint64_t PageSum(const std::byte* page, size_t bytes);

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_DISK_PAGE_SUM_H_
