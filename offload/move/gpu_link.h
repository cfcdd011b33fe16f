#ifndef TIERCEL_OFFLOAD_MOVE_GPU_LINK_H_
#define TIERCEL_OFFLOAD_MOVE_GPU_LINK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/machine/copy_words_body.h"
#include "kernels/machine/cuda_stream.h"
#include "offload/move/link.h"
#include "offload/move/pinned_blocks.h"
#include "offload/tier/placement.h"

namespace tiercel {

// The link of a GPU, with a queue of its own beside the one that computes. The
// host tier is pinned block by block as it is first copied; where that is
// refused bytes go through two small buffers that are pinned, and where those
// are refused too the driver copies as it can.
//
// Small copies up, of chunks that were gathered, are packed into these buffers
// and unpacked by one kernel, which reads them there: a call for each would
// take longer than its bytes, and wait behind what is on its way. Where kernels
// do not see pinned memory, each is a copy.
//
// Two groups of copies are on their way at most, so that what is urgent waits
// for no more than that.
class GpuLink final : public Link {
 public:
  // Most bytes of a group, and of one copy: 0.7 ms at 25 GB/s. A copy is of one
  // block of those that are pinned.
  static constexpr int64_t kGroupBytes = PinnedBlocks::kBlockBytes;

  // Copies of up to so many bytes are packed; so many are unpacked at once.
  static constexpr int64_t kSmallBytes = 64 << 10;
  static constexpr int64_t kPackBytes = int64_t{4} << 20;

  // `compute` outlives it; `copies` is another queue of the same GPU.
  GpuLink(CudaStream& compute, std::unique_ptr<CudaStream> copies,
          std::shared_ptr<Placement> placement, Clock& clock = SteadyClock());
  ~GpuLink() override;

  absl::StatusOr<Moved> Copy(const Transfer& transfer, Clock::Time since,
                             const std::atomic<bool>& drop) override;
  absl::StatusOr<double> Finish() override;
  uint64_t Mark() override { return compute_.Mark(); }
  absl::Status Await(uint64_t mark) override { return compute_.Await(mark); }
  bool HostHasAddresses() const override { return !CudaStream::IsPlayed(); }
  void Forget(const HostRegion& region) override;

 private:
  struct Buffer {
    HostRegion region;  // none until it is needed
    bool pinned = false;
    bool seen = false;  // by kernels
    uint64_t sent = 0;  // the mark of what last left it
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
  absl::Status Send(Direction direction, std::byte* host, std::byte* device,
                    int64_t bytes);
  absl::StatusOr<Buffer*> TakeBuffer();
  absl::StatusOr<bool> Pack(const Transfer& transfer, const std::byte* host);
  absl::Status Unpack();
  bool ComesDown(const Transfer& transfer) const;
  absl::Status SendThroughBuffer(Direction direction, std::byte* host,
                                 std::byte* device, int64_t bytes);

  CudaStream& compute_;
  const std::unique_ptr<CudaStream> copies_;
  const std::shared_ptr<Placement> placement_;
  HostMappings mappings_;
  PinnedBlocks pinned_;

  int64_t group_bytes_ = 0;  // of the group that is being filled
  uint64_t last_group_ = 0;  // the mark of the one before it
  std::array<Buffer, 2> buffers_;
  size_t next_buffer_ = 0;
  Buffer* packed_ = nullptr;  // what is being filled; null: nothing
  int64_t packed_bytes_ = 0;
  std::vector<PackedRun> packed_runs_;
  std::vector<Written> written_;  // since the last Finish
  absl::Status failed_;           // the first error since then
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_MOVE_GPU_LINK_H_
