#include "offload/move/link.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/system/faults.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

// The bytes moved between two checks of `drop`: 0.5 ms at 2 GB/s.
constexpr int64_t kPieceBytes = 1 << 20;

}  // namespace

std::vector<Transfer> Joined(const std::vector<Transfer>& transfers,
                             int64_t most) {
  std::vector<Transfer> joined;
  for (const Transfer& t : transfers) {
    Transfer* const last = joined.empty() ? nullptr : &joined.back();
    if (last != nullptr && last->direction == t.direction &&
        last->file == nullptr && t.file == nullptr && last->host == t.host &&
        last->offset + last->bytes == t.offset &&
        last->device + last->bytes == t.device &&
        t.bytes <= most - last->bytes) {
      last->bytes += t.bytes;
    } else {
      joined.push_back(t);
    }
  }
  return joined;
}

absl::StatusOr<Link::Moved> HostLink::Copy(const Transfer& transfer,
                                           Clock::Time /*since*/,
                                           const std::atomic<bool>& drop) {
  if (drop.load()) return Moved{0, 0};
  placed_.Place(*transfer.host);
  const Clock::Time begin = clock().Now();
  std::byte* const host = transfer.host->data() + transfer.offset;
  const bool up = transfer.direction == Direction::kHostToDevice;
  std::byte* const device = transfer.device.raw();
  std::memcpy(up ? device : host, up ? host : device,
              static_cast<size_t>(transfer.bytes));
  return Moved{transfer.bytes, SecondsBetween(begin, clock().Now())};
}

SimulatedLink::SimulatedLink(double rate, double latency,
                             std::unique_ptr<Link> copies, Clock& clock)
    : Link(clock), rate_(rate), latency_(latency), copies_(std::move(copies)) {}

absl::StatusOr<Link::Moved> SimulatedLink::Copy(const Transfer& transfer,
                                                Clock::Time since,
                                                const std::atomic<bool>& drop) {
  if (FaultAt({.of = Callee::kLink, .call = "copy", .bytes = transfer.bytes}) !=
      0) {
    return DeviceError("copy_failed",
                       absl::StrCat("simulated link: a copy of ",
                                    transfer.bytes, " bytes failed"));
  }
  const auto duration = [](double seconds) {
    return std::chrono::duration_cast<Clock::Time::duration>(
        std::chrono::duration<double>(seconds));
  };
  const Clock::Time begin = std::max(since, free_at_);
  free_at_ = begin + duration(latency_);
  int64_t done = 0;
  while (done < transfer.bytes && !drop.load()) {
    Transfer piece = transfer;
    piece.offset += done;
    piece.device += done;
    piece.bytes = std::min(kPieceBytes, transfer.bytes - done);
    ASSIGN_OR_RETURN(const Moved moved, copies_->Copy(piece, since, drop));
    done += moved.bytes;
    free_at_ += duration(static_cast<double>(moved.bytes) / rate_);
    // If a sleep ends late the next piece starts late, but its end is computed
    // from the link's own clock, so the link catches up.
    clock().SleepUntil(free_at_);
  }
  // If copying itself is slower than the link, its clock follows real time.
  free_at_ = std::max(free_at_, clock().Now() - std::chrono::milliseconds(1));
  return Moved{done, SecondsBetween(begin, free_at_)};
}

}  // namespace tiercel
