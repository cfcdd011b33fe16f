#ifndef TIERCEL_OFFLOAD_MOVE_GPU_LINK_H_
#define TIERCEL_OFFLOAD_MOVE_GPU_LINK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/device/copies.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "offload/move/link.h"
#include "offload/move/pinned_blocks.h"
#include "offload/tier/placement.h"

namespace tiercel {

// The link of a GPU, with a queue of its own beside the one that computes. The
// host tier is pinned block by block as it is first copied. If that is refused,
// bytes go through two small pinned buffers, and if those are refused, too, the
// driver copies from pageable memory.
//
// Small copies up, of chunks that were gathered, are packed into these buffers
// and unpacked by one kernel, which reads them there: a call for each would
// take longer than its bytes, and would wait behind earlier copies. If kernels
// do not see pinned memory, each chunk is a copy.
//
// At most two groups of copies are under way, so that an urgent copy waits for
// no more than these.
class GpuLink final : public Link {
 public:
  // The most bytes of a group, and of one copy, which lies in one pinned block:
  // 0.7 ms at 25 GB/s.
  static constexpr int64_t kGroupBytes = PinnedBlocks::kBlockBytes;

  // The most bytes of a copy that is packed, and of all that are unpacked at
  // once.
  static constexpr int64_t kSmallBytes = 64 << 10;
  static constexpr int64_t kPackBytes = int64_t{4} << 20;

  // `compute` outlives it; `copies` is another queue of the same GPU.
  GpuLink(DeviceQueue& compute, std::unique_ptr<DeviceQueue> copies,
          std::shared_ptr<Placement> placement, Clock& clock = SteadyClock());
  ~GpuLink() override;

  absl::StatusOr<Moved> Copy(const Transfer& transfer, Clock::Time since,
                             const std::atomic<bool>& drop) override;
  absl::StatusOr<double> Finish() override;
  uint64_t Mark() override { return compute_.Mark(); }
  absl::Status Await(uint64_t mark) override { return compute_.Await(mark); }
  void Forget(const HostRegion& region) override;

 private:
  struct Buffer {
    HostRegion region;  // empty until it is needed
    bool pinned = false;
    bool seen = false;  // kernels can read it
    uint64_t sent = 0;  // the mark after the last copy out of it
  };
  // Bytes of a region that are coming down.
  struct Written {
    const HostRegion* region;
    int64_t begin;
    int64_t end;
  };

  absl::StatusOr<Moved> CopyNow(const Transfer& transfer,
                                const std::atomic<bool>& drop);
  absl::Status MakeRoom(int64_t bytes);
  absl::Status Send(Direction direction, std::byte* host,
                    DevicePtr<std::byte> device, int64_t bytes);
  absl::StatusOr<Buffer*> TakeBuffer();
  absl::StatusOr<bool> Pack(const Transfer& transfer, const std::byte* host);
  absl::Status Unpack();
  bool ComesDown(const Transfer& transfer) const;
  absl::Status SendThroughBuffer(Direction direction, std::byte* host,
                                 DevicePtr<std::byte> device, int64_t bytes);

  DeviceQueue& compute_;
  const std::unique_ptr<DeviceQueue> copies_;
  const std::shared_ptr<Placement> placement_;
  PlacedRegions placed_;
  PinnedBlocks pinned_;

  int64_t group_bytes_ = 0;  // bytes of the group that is being filled
  uint64_t last_group_ = 0;  // the mark after the group before it
  std::array<Buffer, 2> buffers_;
  size_t next_buffer_ = 0;
  Buffer* packed_ = nullptr;  // the buffer being packed; null: none
  int64_t packed_bytes_ = 0;
  std::vector<PackedRun> packed_runs_;
  std::vector<Written> written_;  // bytes sent down since the last Finish
  absl::Status failed_;           // the first error since the last Finish
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_MOVE_GPU_LINK_H_
