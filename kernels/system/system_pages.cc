#include "kernels/system/system_pages.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace tiercel {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

std::byte* MapPages(size_t bytes, Mapping mapping) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  // A mapping with room for a huge page begins at one: it is made larger, and
  // the rest is unmapped.
  const size_t spare = bytes < kHugePage ? 0 : kHugePage;
  if (bytes > SIZE_MAX - spare - page) {
    errno = ENOMEM;
    return nullptr;
  }
  const size_t wanted = (bytes + page - 1) / page * page;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS |
                    (mapping == Mapping::kHoped ? MAP_NORESERVE : 0);
  void* const mapped = mmap(nullptr, wanted + spare, PROT_READ | PROT_WRITE,
                            flags, /*fd=*/-1, /*offset=*/0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(mapped);
  const size_t over = reinterpret_cast<uintptr_t>(begin) % kHugePage;
  const size_t before = spare == 0 || over == 0 ? 0 : kHugePage - over;
  if (before > 0) (void)munmap(begin, before);
  if (before < spare) (void)munmap(begin + before + wanted, spare - before);
  // Long runs are read, for which huge pages save address translation and page
  // faults. A refusal costs speed only.
  if (spare > 0) (void)madvise(begin + before, wanted, MADV_HUGEPAGE);
  return begin + before;
}

void UnmapPages(std::byte* data, size_t bytes) { (void)munmap(data, bytes); }

void DiscardPages(std::byte* data, size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t over = reinterpret_cast<uintptr_t>(data) % page;
  const size_t before = over == 0 ? 0 : page - over;
  if (bytes < before + page) return;
  const size_t whole = (bytes - before) / page * page;
  (void)madvise(data + before, whole, MADV_DONTNEED);
}

void TrimHeap() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace tiercel
