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

// A link for a host tier that is too small, in front of the link that copies.
// Pages of a PageFile come up through a few buffers in host memory: several are
// read at once, ahead of the copies, and each is checked against its checksum
// before it is copied. Pages go down through another buffer.
class DiskLink final : public Link {
 public:
  // A page of the files has `page_bytes`, and a layer at most `pages` pages.
  // Errors: out_of_memory.
  static absl::StatusOr<std::unique_ptr<DiskLink>> Create(
      std::unique_ptr<Link> copies, DiskCalls& disk, int64_t page_bytes,
      int64_t pages);
  // The bytes of host memory that its buffers take.
  static int64_t BufferBytes(int64_t page_bytes, int64_t pages);

  absl::StatusOr<Moved> Copy(const Transfer& transfer, Clock::Time since,
                             const std::atomic<bool>& drop) override;
  void Begin(const std::vector<Transfer>& transfers) override;
  void End(const std::vector<Transfer>& transfers) override;
  absl::StatusOr<double> Finish() override;
  uint64_t Mark() override { return copies_->Mark(); }
  absl::Status Await(uint64_t mark) override { return copies_->Await(mark); }
  void Forget(const HostRegion& region) override { copies_->Forget(region); }

  // The bytes read from disk so far. Callable from any thread.
  uint64_t read_bytes() const { return read_bytes_.load(); }

 private:
  // The reads of one list of transfers. Two lists may be under way, as an
  // urgent one may interrupt another.
  struct Lane {
    const std::vector<Transfer>* of = nullptr;  // null: the lane is free
    size_t next = 0;  // index in `of`: pages from there on are not asked for
    const Transfer* last = nullptr;  // the last whose page was asked for
    std::vector<size_t> asked;       // buffers, in the order they are copied
    bool at_hand = false;            // asked.front() has been read and checked
    struct Held {
      const Transfer* page = nullptr;  // the first transfer that reads it
      std::optional<BufferedReads::Whole> whole = {};
      Clock::Time since = {};  // when it became whole
    };
    std::vector<Held> held;              // [buffer]
    std::optional<BufferedReads> reads;  // into buffers of its own
    int64_t first_byte = 0;              // their begin in buffers_
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
  const HostRegion buffers_;  // both lanes', then the one for pages going down
  std::array<Lane, 2> lanes_;
  absl::Status lost_;  // the first error of copies since the last Finish
  std::atomic<uint64_t> read_bytes_{0};
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_MOVE_DISK_LINK_H_
