#include "kernels/device/device_memory.h"

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/system/system_pages.h"
#include "lib/status/error.h"

namespace tiercel {

namespace {

// malloc does not return freed memory to the system if a small block was taken
// after it. So blocks from this size on are mapped, and go back to the system
// at once. (With AddressSanitizer all blocks are malloc's, so that it checks
// them.)
#ifdef __SANITIZE_ADDRESS__
constexpr int64_t kLargeBytes = std::numeric_limits<int64_t>::max();
#else
constexpr int64_t kLargeBytes = int64_t{64} << 10;
#endif

}  // namespace

absl::StatusOr<DevicePtr<std::byte>> HeapMemory::Allocate(
    size_t bytes, std::string_view what) {
  void* data = nullptr;
  int64_t size = 0;
  if (bytes <= PTRDIFF_MAX - kDeviceAlignment) {
    size = AlignedBytes(static_cast<int64_t>(bytes));
    data =
        size >= kLargeBytes
            ? MapPages(static_cast<size_t>(size), Mapping::kPromised)
            : std::aligned_alloc(kDeviceAlignment, static_cast<size_t>(size));
  }
  if (data == nullptr) {
    return MemoryError("out_of_memory",
                       absl::StrCat(std::string(what), ": need ", bytes,
                                    " bytes, the system gave none"));
  }
  Count(size);
  return DevicePtr(static_cast<std::byte*>(data));
}

void HeapMemory::Free(DevicePtr<std::byte> data, size_t bytes) {
  const int64_t size = AlignedBytes(static_cast<int64_t>(bytes));
  Count(-size);
  if (size >= kLargeBytes) {
    UnmapPages(data.raw(), static_cast<size_t>(size));
  } else {
    std::free(data.raw());
  }
}

DeviceMemory& SystemMemory() {
  // It is never destroyed, as the caller may free blocks until the process
  // ends. It is not on the heap, where it would leak when a module is closed.
  alignas(HeapMemory) static std::byte place[sizeof(HeapMemory)];
  static HeapMemory* const heap = new (place) HeapMemory;
  return *heap;
}

}  // namespace tiercel
