#include "kernels/base/device_memory.h"

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/base/error.h"

namespace tiercel {
namespace {

class Heap final : public DeviceMemory {
 public:
  absl::StatusOr<std::byte*> Allocate(size_t bytes,
                                      std::string_view what) override {
    void* data = nullptr;
    if (bytes <= PTRDIFF_MAX - kDeviceAlignment) {
      const auto size =
          static_cast<size_t>(AlignedBytes(static_cast<int64_t>(bytes)));
      data = std::aligned_alloc(kDeviceAlignment, size);
    }
    if (data == nullptr) {
      return MemoryError("out_of_memory",
                         absl::StrCat(std::string(what), ": need ", bytes,
                                      " bytes, the system gave none"));
    }
    return static_cast<std::byte*>(data);
  }
  void Free(std::byte* data, size_t /*bytes*/) override { std::free(data); }
};

}  // namespace

DeviceMemory& SystemMemory() {
  static Heap heap;
  return heap;
}

}  // namespace tiercel
