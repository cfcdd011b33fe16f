#ifndef TIERCEL_KERNELS_SYSTEM_SYSTEM_PAGES_H_
#define TIERCEL_KERNELS_SYSTEM_SYSTEM_PAGES_H_

#include <cstddef>

namespace tiercel {

// Zeroed memory that goes back to the system as soon as it is unmapped. The
// system provides its pages when they are first written. It begins at a huge
// page if it has room for one.

// kPromised: refused if the system cannot have so much memory. kHoped: takes
// address space only, until it is written.
enum class Mapping { kPromised, kHoped };

// Maps `bytes` > 0. Returns null if the system refuses; errno says why.
std::byte* MapPages(size_t bytes, Mapping mapping);
void UnmapPages(std::byte* data, size_t bytes);
// Gives back the memory of the pages that lie wholly in these bytes, and that
// are not locked. The bytes are undefined afterwards.
void DiscardPages(std::byte* data, size_t bytes);
// Has the allocator of this process give back what it holds free.
void TrimHeap();

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SYSTEM_SYSTEM_PAGES_H_
