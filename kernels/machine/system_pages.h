#ifndef TIERCEL_KERNELS_MACHINE_SYSTEM_PAGES_H_
#define TIERCEL_KERNELS_MACHINE_SYSTEM_PAGES_H_

#include <cstddef>

namespace tiercel {

// Zeroed memory that is the system's again as soon as it is unmapped. It is
// taken page by page as it is first written, and begins at a huge page where it
// has room for one.

// kPromised: refused where there cannot be so much. kHoped: costs address space
// only, until it is written.
enum class Mapping { kPromised, kHoped };

// `bytes` > 0. Null: refused, errno says why.
std::byte* MapPages(size_t bytes, Mapping mapping);
void UnmapPages(std::byte* data, size_t bytes);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_MACHINE_SYSTEM_PAGES_H_
