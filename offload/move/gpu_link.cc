#include "offload/move/gpu_link.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

constexpr int64_t kPacket = 16;  // bytes that a kernel copies at once
// The most runs of a pack: their list lies in the buffer after its bytes.
constexpr int64_t kMostRuns = 64 << 10;
static_assert(GpuLink::kPackBytes +
                  kMostRuns * static_cast<int64_t>(sizeof(PackedRun)) <=
              GpuLink::kGroupBytes);

}  // namespace

GpuLink::GpuLink(DeviceQueue& compute, std::unique_ptr<DeviceQueue> copies,
                 std::shared_ptr<Placement> placement, Clock& clock)
    : Link(clock),
      compute_(compute),
      copies_(std::move(copies)),
      placement_(std::move(placement)),
      placed_(placement_),
      pinned_(placement_) {}

GpuLink::~GpuLink() {
  copies_->Synchronize().IgnoreError();
  for (const Buffer& buffer : buffers_) {
    if (buffer.pinned) placement_->Unpin(buffer.region.data());
  }
}

// An error here may concern earlier copies, so Finish returns it, too.
absl::StatusOr<Link::Moved> GpuLink::Copy(const Transfer& transfer,
                                          Clock::Time /*since*/,
                                          const std::atomic<bool>& drop) {
  absl::StatusOr<Moved> moved = CopyNow(transfer, drop);
  failed_.Update(moved.status());
  return moved;
}

absl::StatusOr<Link::Moved> GpuLink::CopyNow(const Transfer& transfer,
                                             const std::atomic<bool>& drop) {
  placed_.Place(*transfer.host);
  std::byte* const base = transfer.host->data();
  const Clock::Time begin = clock().Now();
  if (drop.load()) return Moved{0, 0};
  ASSIGN_OR_RETURN(const bool packed, Pack(transfer, base + transfer.offset));
  if (packed) {
    return Moved{transfer.bytes, SecondsBetween(begin, clock().Now())};
  }
  RETURN_IF_ERROR(Unpack());
  if (transfer.direction == Direction::kDeviceToHost) {
    written_.push_back(
        {transfer.host, transfer.offset, transfer.offset + transfer.bytes});
  }
  int64_t done = 0;
  while (done < transfer.bytes && !drop.load()) {
    const int64_t offset = transfer.offset + done;
    const int64_t piece =
        std::min(kGroupBytes - offset % kGroupBytes, transfer.bytes - done);
    RETURN_IF_ERROR(MakeRoom(piece));
    std::byte* const host = base + offset;
    const DevicePtr<std::byte> device = transfer.device + done;
    const bool direct =
        pinned_.IsPinned(*transfer.host, base, offset / kGroupBytes);
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
  absl::Status status = std::exchange(failed_, absl::OkStatus());
  status.Update(Unpack());
  group_bytes_ = 0;
  last_group_ = 0;
  written_.clear();
  status.Update(copies_->Await(copies_->Mark()));
  if (!status.ok()) return status;
  return SecondsBetween(begin, clock().Now());
}

// Ends the group if it would become too large, and waits for the one before it.
absl::Status GpuLink::MakeRoom(int64_t bytes) {
  if (group_bytes_ + bytes <= kGroupBytes) {
    group_bytes_ += bytes;
    return absl::OkStatus();
  }
  group_bytes_ = bytes;
  return copies_->Await(std::exchange(last_group_, copies_->Mark()));
}

absl::Status GpuLink::Send(Direction direction, std::byte* host,
                           DevicePtr<std::byte> device, int64_t bytes) {
  const auto size = static_cast<size_t>(bytes);
  return direction == Direction::kHostToDevice
             ? copies_->Copy(device, host, size)
             : copies_->Copy(host, device, size);
}

void GpuLink::Forget(const HostRegion& region) {
  // A Finish that failed may have left copies under way.
  copies_->Synchronize().IgnoreError();
  pinned_.Forget(region);
  placed_.Forget(region);
}

// ---- Copies through small buffers ----

// Returns the next of the two buffers, once all copies out of it have ended.
absl::StatusOr<GpuLink::Buffer*> GpuLink::TakeBuffer() {
  Buffer& buffer = buffers_[next_buffer_];
  next_buffer_ = (next_buffer_ + 1) % buffers_.size();
  RETURN_IF_ERROR(copies_->Await(buffer.sent));
  if (buffer.region.data() == nullptr) {
    ASSIGN_OR_RETURN(buffer.region, HostRegion::Reserve(kGroupBytes));
    buffer.pinned =
        placement_->Pin(buffer.region.data(), buffer.region.bytes());
    buffer.seen = buffer.pinned && copies_->KernelsSee(buffer.region.data());
  }
  return &buffer;
}

// Returns true if bytes that the transfer reads are still on their way down.
bool GpuLink::ComesDown(const Transfer& transfer) const {
  return std::any_of(
      written_.begin(), written_.end(), [&transfer](const Written& written) {
        return written.region == transfer.host &&
               written.begin < transfer.offset + transfer.bytes &&
               transfer.offset < written.end;
      });
}

// Packs the transfer, whose bytes are at `host`, if that is possible. If it
// returns false the caller makes a copy.
absl::StatusOr<bool> GpuLink::Pack(const Transfer& transfer,
                                   const std::byte* host) {
  if (transfer.direction != Direction::kHostToDevice || transfer.bytes == 0 ||
      transfer.bytes > kSmallBytes || ComesDown(transfer)) {
    return false;
  }
  // A run lies as far after the beginning of a packet as its destination does.
  const auto skew =
      static_cast<int64_t>(reinterpret_cast<uintptr_t>(transfer.device.raw()) %
                           static_cast<uintptr_t>(kPacket));
  int64_t at = (packed_bytes_ + kPacket - 1) / kPacket * kPacket + skew;
  if (at + transfer.bytes > kPackBytes ||
      std::ssize(packed_runs_) == kMostRuns) {
    RETURN_IF_ERROR(Unpack());
    at = skew;
  }
  if (packed_ == nullptr) {
    ASSIGN_OR_RETURN(Buffer * buffer, TakeBuffer());
    if (!buffer->seen) return false;
    packed_ = buffer;
  }
  std::memcpy(packed_->region.data() + at, host,
              static_cast<size_t>(transfer.bytes));
  packed_runs_.push_back({transfer.device, static_cast<uint32_t>(at),
                          static_cast<uint32_t>(transfer.bytes)});
  packed_bytes_ = at + transfer.bytes;
  return true;
}

// Launches the kernel that unpacks the pack.
absl::Status GpuLink::Unpack() {
  if (packed_ == nullptr) return absl::OkStatus();
  Buffer& buffer = *std::exchange(packed_, nullptr);
  const std::vector<PackedRun> runs = std::exchange(packed_runs_, {});
  const int64_t bytes = std::exchange(packed_bytes_, 0);
  RETURN_IF_ERROR(MakeRoom(bytes));
  std::byte* const list = buffer.region.data() + kPackBytes;
  std::memcpy(list, runs.data(), runs.size() * sizeof(PackedRun));
  const absl::Status status = copies_->Unpack(
      buffer.region.data(), reinterpret_cast<const PackedRun*>(list),
      std::ssize(runs));
  buffer.sent = copies_->Mark();
  return status;
}

absl::Status GpuLink::SendThroughBuffer(Direction direction, std::byte* host,
                                        DevicePtr<std::byte> device,
                                        int64_t bytes) {
  ASSIGN_OR_RETURN(Buffer * taken, TakeBuffer());
  Buffer& buffer = *taken;
  const auto size = static_cast<size_t>(bytes);
  std::byte* const between = buffer.region.data();
  if (direction == Direction::kHostToDevice) {
    std::memcpy(between, host, size);
    RETURN_IF_ERROR(Send(direction, between, device, bytes));
    buffer.sent = copies_->Mark();
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(Send(direction, between, device, bytes));
  RETURN_IF_ERROR(copies_->Await(copies_->Mark()));
  std::memcpy(host, between, size);
  return absl::OkStatus();
}

}  // namespace tiercel
