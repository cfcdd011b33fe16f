#include "offload/move/host_mappings.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"

namespace tiercel {

HostMappings::~HostMappings() {
  for (const auto& [region, mapping] : mapped_) {
    Unmap(mapping);
  }
}

void HostMappings::Unmap(const Mapping& mapping) {
  if (mapping.own) munmap(mapping.address, mapping.bytes);
}

absl::StatusOr<std::byte*> HostMappings::AddressOf(const HostRegion& region) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Mapping& mapping = mapped_[&region];
  if (mapping.address != nullptr) return mapping.address;
  if (region.data() != nullptr) {
    mapping = {region.data(), region.bytes(), /*own=*/false};
    if (placement_ != nullptr) placement_->Apply(region.data(), region.bytes());
    return mapping.address;
  }
  void* const address = mmap(nullptr, region.bytes(), PROT_READ | PROT_WRITE,
                             MAP_SHARED, region.fd(), 0);
  if (address == MAP_FAILED) {
    return MemoryError("out_of_memory",
                       absl::StrCat("host tier: cannot map ", region.bytes(),
                                    " bytes: ", std::strerror(errno)));
  }
  mapping = {static_cast<std::byte*>(address), region.bytes(), /*own=*/true};
  if (placement_ != nullptr) placement_->Apply(address, region.bytes());
  return mapping.address;
}

void HostMappings::Forget(const HostRegion& region) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = mapped_.find(&region);
  if (known == mapped_.end()) return;
  Unmap(known->second);
  mapped_.erase(known);
}

}  // namespace tiercel
