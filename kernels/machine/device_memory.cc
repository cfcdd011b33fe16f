#include "kernels/machine/device_memory.h"

#include <cstddef>
#include <cstdlib>
#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/base/error.h"

namespace tiercel {

absl::StatusOr<std::byte*> HeapMemory::Allocate(size_t bytes,
                                                std::string_view what) {
  void* data = nullptr;
  int64_t size = 0;
  if (bytes <= PTRDIFF_MAX - kDeviceAlignment) {
    size = AlignedBytes(static_cast<int64_t>(bytes));
    data = std::aligned_alloc(kDeviceAlignment, static_cast<size_t>(size));
  }
  if (data == nullptr) {
    return MemoryError("out_of_memory",
                       absl::StrCat(std::string(what), ": need ", bytes,
                                    " bytes, the system gave none"));
  }
  Count(size);
  return static_cast<std::byte*>(data);
}

void HeapMemory::Free(std::byte* data, size_t bytes) {
  Count(-AlignedBytes(static_cast<int64_t>(bytes)));
  std::free(data);
}

DeviceMemory& SystemMemory() {
  // Never destroyed: what the caller keeps until its own end is freed here. Nor
  // on the heap, which a module that is closed would leave it to.
  alignas(HeapMemory) static std::byte place[sizeof(HeapMemory)];
  static HeapMemory* const heap = new (place) HeapMemory;
  return *heap;
}

}  // namespace tiercel
