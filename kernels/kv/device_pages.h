#ifndef TIERCEL_KERNELS_KV_DEVICE_PAGES_H_
#define TIERCEL_KERNELS_KV_DEVICE_PAGES_H_

#include <cstddef>
#include <cstdint>

#include "kernels/device/device_ptr.h"

namespace tiercel {

// The pages that a kernel reads. Their list is in the kernel's memory too.
struct DevicePages {
  DevicePtr<const DevicePtr<std::byte>> list;
  int64_t first;  // the page index of the list's first

  constexpr const std::byte* At(int64_t page) const {
    return list.raw()[page - first].raw();
  }
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_DEVICE_PAGES_H_
