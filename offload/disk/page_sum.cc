#include "offload/disk/page_sum.h"

#include <xxhash.h>

namespace tiercel {

uint64_t PageSum(const std::byte* page, size_t bytes) {
  return XXH3_64bits(page, bytes);
}

}  // namespace tiercel
