#include "offload/move/gpu_link.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/base/error.h"

namespace tiercel {

GpuLink::GpuLink(CudaStream& compute, std::unique_ptr<CudaStream> copies,
                 std::shared_ptr<Placement> placement, Clock& clock)
    : Link(clock),
      compute_(compute),
      copies_(std::move(copies)),
      placement_(std::move(placement)),
      mappings_(placement_) {}

GpuLink::~GpuLink() {
  copies_->Synchronize().IgnoreError();
  for (const auto& [region, blocks] : blocks_) Unpin(blocks);
  for (const Buffer& buffer : buffers_) {
    if (buffer.pinned) placement_->Unpin(buffer.region.data());
  }
}

absl::StatusOr<Link::Moved> GpuLink::Copy(const Transfer& transfer,
                                          Clock::Time /*since*/,
                                          const std::atomic<bool>& drop) {
  const absl::StatusOr<std::byte*> base = mappings_.AddressOf(*transfer.host);
  if (!base.ok()) return base.status();
  const Clock::Time begin = clock().Now();
  int64_t done = 0;
  while (done < transfer.bytes && !drop.load()) {
    const int64_t offset = transfer.offset + done;
    const int64_t piece =
        std::min(kGroupBytes - offset % kGroupBytes, transfer.bytes - done);
    if (absl::Status s = MakeRoom(piece); !s.ok()) return s;
    std::byte* const host = *base + offset;
    std::byte* const device = transfer.device + done;
    const bool direct = IsPinned(*transfer.host, *base, offset / kGroupBytes);
    const absl::Status sent =
        direct ? Send(transfer.direction, host, device, piece)
               : SendThroughBuffer(transfer.direction, host, device, piece);
    if (!sent.ok()) return sent;
    done += piece;
  }
  return Moved{done, SecondsBetween(begin, clock().Now())};
}

absl::StatusOr<double> GpuLink::Finish() {
  const Clock::Time begin = clock().Now();
  group_bytes_ = 0;
  last_group_ = 0;
  if (absl::Status s = copies_->Await(copies_->Mark()); !s.ok()) return s;
  return SecondsBetween(begin, clock().Now());
}

// Ends a group that would become too large, and waits for the one before it.
absl::Status GpuLink::MakeRoom(int64_t bytes) {
  if (group_bytes_ + bytes <= kGroupBytes) {
    group_bytes_ += bytes;
    return absl::OkStatus();
  }
  group_bytes_ = bytes;
  return copies_->Await(std::exchange(last_group_, copies_->Mark()));
}

absl::Status GpuLink::Send(Direction direction, std::byte* host,
                           std::byte* device, int64_t bytes) {
  const bool up = direction == Direction::kHostToDevice;
  return copies_->Copy(up ? device : host, up ? host : device,
                       static_cast<size_t>(bytes));
}

// ---- Pinned memory ----

// Whether the block can be copied from and to as it is. Asked once for each.
bool GpuLink::IsPinned(const HostRegion& region, std::byte* base,
                       int64_t block) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Block>& blocks = blocks_[&region];
  const auto bytes = static_cast<int64_t>(region.bytes());
  blocks.resize(static_cast<size_t>((bytes - 1) / kGroupBytes + 1));
  Block& known = blocks[static_cast<size_t>(block)];
  if (known.address == nullptr) {
    known.address = base + block * kGroupBytes;
    known.pinned = placement_->Pin(
        known.address, static_cast<size_t>(
                           std::min(kGroupBytes, bytes - block * kGroupBytes)));
  }
  return known.pinned;
}

void GpuLink::Unpin(const std::vector<Block>& blocks) {
  for (const Block& block : blocks) {
    if (block.pinned) placement_->Unpin(block.address);
  }
}

void GpuLink::Forget(const HostRegion& region) {
  // A Finish that failed may have left copies under way.
  copies_->Synchronize().IgnoreError();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known = blocks_.find(&region);
    if (known != blocks_.end()) {
      Unpin(known->second);
      blocks_.erase(known);
    }
  }
  mappings_.Forget(region);
}

// ---- Memory that is not pinned ----

absl::Status GpuLink::SendThroughBuffer(Direction direction, std::byte* host,
                                        std::byte* device, int64_t bytes) {
  Buffer& buffer = buffers_[next_buffer_];
  next_buffer_ = (next_buffer_ + 1) % buffers_.size();
  if (absl::Status s = copies_->Await(buffer.sent); !s.ok()) return s;
  if (buffer.region.data() == nullptr) {
    absl::StatusOr<HostRegion> region = HostRegion::Reserve(kGroupBytes);
    if (!region.ok()) return region.status();
    buffer.region = *std::move(region);
    buffer.pinned =
        placement_->Pin(buffer.region.data(), buffer.region.bytes());
  }
  const auto size = static_cast<size_t>(bytes);
  std::byte* const between = buffer.region.data();
  if (direction == Direction::kHostToDevice) {
    std::memcpy(between, host, size);
    if (absl::Status s = Send(direction, between, device, bytes); !s.ok()) {
      return s;
    }
    buffer.sent = copies_->Mark();
    return absl::OkStatus();
  }
  if (absl::Status s = Send(direction, between, device, bytes); !s.ok()) {
    return s;
  }
  if (absl::Status s = copies_->Await(copies_->Mark()); !s.ok()) return s;
  std::memcpy(host, between, size);
  return absl::OkStatus();
}

}  // namespace tiercel
