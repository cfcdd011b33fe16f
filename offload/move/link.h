#ifndef TIERCEL_OFFLOAD_MOVE_LINK_H_
#define TIERCEL_OFFLOAD_MOVE_LINK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device/device_ptr.h"
#include "kernels/system/clock.h"
#include "offload/disk/page_file.h"
#include "offload/tier/host_region.h"
#include "offload/tier/placement.h"

namespace tiercel {

enum class Direction { kHostToDevice, kDeviceToHost };

// One run of bytes to move between the tiers. The host side is a region and an
// offset. Or it is a page on disk: the whole page on its way down, the whole or
// a part of it on its way up.
struct Transfer {
  Direction direction = Direction::kHostToDevice;
  const HostRegion* host = nullptr;
  int64_t offset = 0;  // in `host`, or in the page
  DevicePtr<std::byte> device;
  int64_t bytes = 0;
  std::shared_ptr<PageFile> file = nullptr;  // null: the bytes are in `host`
  int layer = 0;                             // the page's layer and slot there
  int64_t slot = 0;

  bool ReadsDisk() const {
    return file != nullptr && direction == Direction::kHostToDevice;
  }
  bool IsOfPage(const Transfer& other) const {
    return file == other.file && layer == other.layer && slot == other.slot;
  }
};

// Returns fewer transfers of the same bytes: transfers that are neighbours on
// both sides become one, if that has at most `most` bytes.
std::vector<Transfer> Joined(
    const std::vector<Transfer>& transfers,
    int64_t most = std::numeric_limits<int64_t>::max());

// A link copies between host and device. One thread copies and waits; Mark and
// Forget may be called from any thread.
class Link {
 public:
  explicit Link(Clock& clock = SteadyClock()) : clock_(clock) {}
  virtual ~Link() = default;

  Clock& clock() const { return clock_; }  // the clock of the times below

  struct Moved {
    int64_t bytes;
    double seconds;  // time for which the link was occupied, with its latency
  };
  // Announces the transfers that Copy is given next, in this order; others may
  // come between. The link may begin to read their pages. The list must stay
  // until End, which is called after Finish.
  virtual void Begin(const std::vector<Transfer>& /*transfers*/) {}
  virtual void End(const std::vector<Transfer>& /*transfers*/) {}
  // Moves all of `transfer`, which was asked for at `since`, or less once
  // `drop` is set. The bytes may arrive as late as in Finish. Errors:
  // copy_failed; device_failed; out_of_memory.
  virtual absl::StatusOr<Moved> Copy(const Transfer& transfer,
                                     Clock::Time since,
                                     const std::atomic<bool>& drop) = 0;
  // Waits until all copies have arrived or failed, and returns the seconds that
  // took. Errors: device_failed, for any copy since the last Finish.
  virtual absl::StatusOr<double> Finish() { return 0.0; }

  // Returns a mark after all work that the device has been given so far, or 0
  // if all of it is done.
  virtual uint64_t Mark() { return 0; }
  // Waits until the device has computed all work before `mark`: then memory
  // that this wrote may be copied, and memory that it read may be written over.
  // Errors: device_failed.
  virtual absl::Status Await(uint64_t /*mark*/) { return absl::OkStatus(); }

  // Called before `region` ends, when none of its copies is under way, so that
  // nothing noted of it is taken for another region's.
  virtual void Forget(const HostRegion& region) = 0;

 private:
  Clock& clock_;
};

// The link of a device whose memory is this machine's: it copies memory, and
// each transfer has arrived when Copy returns.
class HostLink final : public Link {
 public:
  explicit HostLink(std::shared_ptr<Placement> placement = nullptr)
      : placed_(std::move(placement)) {}

  absl::StatusOr<Moved> Copy(const Transfer& transfer, Clock::Time since,
                             const std::atomic<bool>& drop) override;
  void Forget(const HostRegion& region) override { placed_.Forget(region); }

 private:
  PlacedRegions placed_;
};

// The time until which a simulated link is occupied, which all links of one
// machine share. Thread-safe.
class SimulatedWire {
 public:
  // Occupies it for `seconds` that were asked for at `asked`, after all that it
  // was asked for before; returns their end.
  Clock::Time Occupy(Clock::Time asked, double seconds);
  // It is occupied until `now` at least. Returns the seconds that this adds.
  double CatchUp(Clock::Time now);

 private:
  std::mutex mutex_;
  Clock::Time free_at_;
};

// A simulated link of a given rate and latency, in front of one that copies:
// transfers follow each other without a gap if they are asked for early enough,
// and never finish sooner than bytes / rate.
class SimulatedLink final : public Link {
 public:
  // `rate` is in bytes per second (> 0), `latency` in seconds per transfer.
  // `wire`: shared with other links; null: a wire of its own.
  SimulatedLink(double rate, double latency,
                std::unique_ptr<Link> copies = std::make_unique<HostLink>(),
                Clock& clock = SteadyClock(),
                std::shared_ptr<SimulatedWire> wire = nullptr);

  absl::StatusOr<Moved> Copy(const Transfer& transfer, Clock::Time since,
                             const std::atomic<bool>& drop) override;
  absl::StatusOr<double> Finish() override { return copies_->Finish(); }
  uint64_t Mark() override { return copies_->Mark(); }
  absl::Status Await(uint64_t mark) override { return copies_->Await(mark); }
  void Forget(const HostRegion& region) override { copies_->Forget(region); }

 private:
  const double rate_;
  const double latency_;
  const std::unique_ptr<Link> copies_;
  const std::shared_ptr<SimulatedWire> wire_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_MOVE_LINK_H_
