#include "offload/move/link.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/error.h"

namespace tiercel {
namespace {

// Moved between two looks at `drop`: 0.5 ms at 2 GB/s.
constexpr int64_t kPieceBytes = 1 << 20;

}  // namespace

std::vector<Transfer> Joined(const std::vector<Transfer>& transfers,
                             int64_t most) {
  std::vector<Transfer> joined;
  for (const Transfer& t : transfers) {
    Transfer* const last = joined.empty() ? nullptr : &joined.back();
    if (last != nullptr && last->direction == t.direction &&
        last->host == t.host && last->offset + last->bytes == t.offset &&
        last->device + last->bytes == t.device &&
        t.bytes <= most - last->bytes) {
      last->bytes += t.bytes;
    } else {
      joined.push_back(t);
    }
  }
  return joined;
}

SimulatedLink::SimulatedLink(double rate, double latency,
                             std::shared_ptr<Placement> placement,
                             std::shared_ptr<const Faults> faults, Clock& clock)
    : Link(clock),
      rate_(rate),
      latency_(latency),
      placement_(std::move(placement)),
      faults_(std::move(faults)) {}

SimulatedLink::~SimulatedLink() {
  for (const auto& [region, mapping] : mapped_) {
    if (mapping.address != nullptr) munmap(mapping.address, mapping.bytes);
  }
}

absl::StatusOr<Link::Moved> SimulatedLink::Copy(const Transfer& transfer,
                                                Clock::Time since,
                                                const std::atomic<bool>& drop) {
  if (faults_ != nullptr && Fails(faults_->copy, transfer.bytes)) {
    return DeviceError("copy_failed",
                       absl::StrCat("simulated link: a copy of ",
                                    transfer.bytes, " bytes failed"));
  }
  const absl::StatusOr<std::byte*> base = AddressOf(*transfer.host);
  if (!base.ok()) return base.status();
  const auto duration = [](double seconds) {
    return std::chrono::duration_cast<Clock::Time::duration>(
        std::chrono::duration<double>(seconds));
  };
  const Clock::Time begin = std::max(since, free_at_);
  free_at_ = begin + duration(latency_);
  int64_t done = 0;
  while (done < transfer.bytes && !drop.load()) {
    const int64_t piece = std::min(kPieceBytes, transfer.bytes - done);
    std::byte* const host = *base + transfer.offset + done;
    std::byte* const device = transfer.device + done;
    const bool up = transfer.direction == Direction::kHostToDevice;
    std::memcpy(up ? device : host, up ? host : device,
                static_cast<size_t>(piece));
    done += piece;
    free_at_ += duration(static_cast<double>(piece) / rate_);
    // A sleep may end late; the next piece then starts late here, but not on
    // the link's own clock, and catches up.
    clock().SleepUntil(free_at_);
  }
  // Copying itself was slower than the link.
  free_at_ = std::max(free_at_, clock().Now() - std::chrono::milliseconds(1));
  return Moved{done, SecondsBetween(begin, free_at_)};
}

absl::StatusOr<std::byte*> SimulatedLink::AddressOf(const HostRegion& region) {
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

void SimulatedLink::Forget(const HostRegion& region) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = mapped_.find(&region);
  if (known == mapped_.end()) return;
  if (known->second.address != nullptr) {
    munmap(known->second.address, known->second.bytes);
  }
  mapped_.erase(known);
}

}  // namespace tiercel
