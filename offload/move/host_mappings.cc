#include "offload/move/host_mappings.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/base/error.h"

namespace tiercel {

HostMappings::~HostMappings() {
  for (const auto& [region, mapping] : mapped_) {
    if (mapping.address != nullptr) munmap(mapping.address, mapping.bytes);
  }
}

absl::StatusOr<std::byte*> HostMappings::AddressOf(const HostRegion& region) {
  if (region.data() != nullptr) return region.data();
  const std::lock_guard<std::mutex> lock(mutex_);
  Mapping& mapping = mapped_[&region];
  if (mapping.address != nullptr) return mapping.address;
  void* const address = mmap(nullptr, region.bytes(), PROT_READ | PROT_WRITE,
                             MAP_SHARED, region.fd(), 0);
  if (address == MAP_FAILED) {
    return MemoryError("out_of_memory",
                       absl::StrCat("host tier: cannot map ", region.bytes(),
                                    " bytes: ", std::strerror(errno)));
  }
  mapping = {static_cast<std::byte*>(address), region.bytes()};
  if (placement_ != nullptr) placement_->Apply(address, region.bytes());
  return mapping.address;
}

void HostMappings::Forget(const HostRegion& region) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = mapped_.find(&region);
  if (known == mapped_.end()) return;
  if (known->second.address != nullptr) {
    munmap(known->second.address, known->second.bytes);
  }
  mapped_.erase(known);
}

}  // namespace tiercel
