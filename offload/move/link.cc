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

Clock::Time SimulatedWire::Occupy(Clock::Time asked, double seconds) {
  const std::lock_guard<std::mutex> lock(mutex_);
  free_at_ = std::max(asked, free_at_) +
             std::chrono::duration_cast<Clock::Time::duration>(
                 std::chrono::duration<double>(seconds));
  return free_at_;
}

double SimulatedWire::CatchUp(Clock::Time now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (now <= free_at_) return 0;
  return SecondsBetween(std::exchange(free_at_, now), now);
}

SimulatedLink::SimulatedLink(double rate, double latency,
                             std::unique_ptr<Link> copies, Clock& clock,
                             std::shared_ptr<SimulatedWire> wire)
    : Link(clock),
      rate_(rate),
      latency_(latency),
      copies_(std::move(copies)),
      wire_(wire != nullptr ? std::move(wire)
                            : std::make_shared<SimulatedWire>()) {}

absl::StatusOr<Link::Moved> SimulatedLink::Copy(const Transfer& transfer,
                                                Clock::Time since,
                                                const std::atomic<bool>& drop) {
  if (FaultAt({.of = Callee::kLink, .call = "copy", .bytes = transfer.bytes}) !=
      0) {
    return DeviceError("copy_failed",
                       absl::StrCat("simulated link: a copy of ",
                                    transfer.bytes, " bytes failed"));
  }
  Moved all = {0, latency_};
  Clock::Time end = wire_->Occupy(since, latency_);
  while (all.bytes < transfer.bytes && !drop.load()) {
    Transfer piece = transfer;
    piece.offset += all.bytes;
    piece.device += all.bytes;
    piece.bytes = std::min(kPieceBytes, transfer.bytes - all.bytes);
    ASSIGN_OR_RETURN(const Moved moved, copies_->Copy(piece, since, drop));
    const double seconds = static_cast<double>(moved.bytes) / rate_;
    all.bytes += moved.bytes;
    all.seconds += seconds;
    // If a sleep ends late the next piece starts late, but its end is computed
    // from the wire's own clock, so the link catches up.
    end = wire_->Occupy(end, seconds);
    clock().SleepUntil(end);
  }
  // If copying itself is slower than the link, its clock follows real time.
  all.seconds += wire_->CatchUp(clock().Now() - std::chrono::milliseconds(1));
  return all;
}

}  // namespace tiercel
