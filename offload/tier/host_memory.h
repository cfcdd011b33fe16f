#ifndef TIERCEL_OFFLOAD_TIER_HOST_MEMORY_H_
#define TIERCEL_OFFLOAD_TIER_HOST_MEMORY_H_

#include <cstdint>
#include <string>

namespace tiercel {

// Bytes of memory that this process can still take: the least of what the
// system has available, what its control groups leave, and what its address
// space may grow by (RLIMIT_AS). INT64_MAX where nothing tells. `root` stands
// before /proc and /sys; tests put a folder there.
int64_t FreeHostMemory(const std::string& root = "");

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_TIER_HOST_MEMORY_H_
