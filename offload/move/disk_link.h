#ifndef TIERCEL_OFFLOAD_MOVE_DISK_LINK_H_
#define TIERCEL_OFFLOAD_MOVE_DISK_LINK_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "offload/disk/page_reader.h"
#include "offload/move/link.h"

namespace tiercel {

// It stands in front of a link whose host tier is too small. Pages of a
// PageFile come up through a few buffers in host memory, several of them read
// at once and ahead of the copies, and none is copied that does not have its
// checksum. They go down through a buffer of their own.
class DiskLink final : public Link {
 public:
  // A page of the files has `page_bytes`, and a layer `pages` at most. Errors:
  // out_of_memory.
  static absl::StatusOr<std::unique_ptr<DiskLink>> Create(
      std::unique_ptr<Link> copies, DiskCalls& disk, int64_t page_bytes,
      int64_t pages);
  // What its buffers take of the host's memory.
  static int64_t BufferBytes(int64_t page_bytes, int64_t pages);

  absl::StatusOr<Moved> Copy(const Transfer& transfer, Clock::Time since,
                             const std::atomic<bool>& drop) override;
  void Begin(const std::vector<Transfer>& transfers) override;
  void End(const std::vector<Transfer>& transfers) override;
  absl::StatusOr<double> Finish() override;
  uint64_t Mark() override { return copies_->Mark(); }
  absl::Status Await(uint64_t mark) override { return copies_->Await(mark); }
  bool HostHasAddresses() const override { return copies_->HostHasAddresses(); }
  void Forget(const HostRegion& region) override { copies_->Forget(region); }

  // What was read so far, from any thread.
  uint64_t read_bytes() const { return read_bytes_.load(); }

 private:
  // The reads of one list of transfers. Two of them may be under way: what is
  // urgent comes between.
  struct Lane {
    const std::vector<Transfer>* of = nullptr;  // null: free
    size_t next = 0;  // of them, the first whose page was not asked for
    const Transfer* last = nullptr;  // that a page was asked for
    std::vector<size_t> asked;       // buffers, as their pages are copied
    bool at_hand = false;            // the first of them is whole and right
    struct Held {
      const Transfer* page = nullptr;  // the first that reads it
      std::optional<BufferedReads::Whole> whole = {};
      Clock::Time since = {};  // that is so
    };
    std::vector<Held> held;              // [buffer]
    std::optional<BufferedReads> reads;  // into buffers of its own
    int64_t first_byte = 0;              // of those, in the region
  };

  DiskLink(std::unique_ptr<Link> copies, DiskCalls& disk, int64_t page_bytes,
           size_t at_once, HostRegion buffers);
  Lane* LaneOf(const std::vector<Transfer>* transfers);
  Lane* LaneOf(const Transfer& transfer);
  void AskMore(Lane& lane);
  void AwaitOne(Lane& lane);
  absl::Status BringPage(Lane& lane, const Transfer& transfer);
  absl::Status LeavePage(Lane& lane);
  absl::Status EndCopies();
  absl::StatusOr<Moved> CopyDown(const Transfer& transfer, Clock::Time since,
                                 const std::atomic<bool>& drop);

  const std::unique_ptr<Link> copies_;
  DiskCalls& disk_;
  const int64_t page_bytes_;
  const HostRegion buffers_;  // of both lanes, then that of what goes down
  std::array<Lane, 2> lanes_;
  absl::Status lost_;  // the first error that copies ended with in between
  std::atomic<uint64_t> read_bytes_{0};
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_MOVE_DISK_LINK_H_
