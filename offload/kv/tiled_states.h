#ifndef TIERCEL_OFFLOAD_KV_TILED_STATES_H_
#define TIERCEL_OFFLOAD_KV_TILED_STATES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "offload/kv/hidden_states.h"
#include "offload/kv/kv_tier.h"
#include "offload/tier/host_region.h"
#include "offload/tier/ledger.h"

namespace tiercel {

// The hidden states of a prompt that has more rows than the device holds: all
// of them in the host tier, and on the device three tiles, of a block of rows
// each. While one block passes through a layer the next two come up, and the
// one before goes down.
//
//   block         0      1      2      3      4
//   tile 0     computes  down   up 3  computes  ...
//   tile 1      up 1  computes  down   up 4
//   tile 2      up 2         computes  down
//
// A tile goes down when its place is wanted, so rows that are few enough to
// stay move nothing. These copies are urgent: no page waits for them, nor do
// they wait for pages that were asked for before.
//
// Used from one thread. It copies through the engine of the sequence's tier.
class TiledStates final : public HiddenStates {
 public:
  static constexpr int kTiles = 1 + kAhead;

  // `width` floats a row; blocks have at most `tile_rows` rows.
  TiledStates(std::shared_ptr<KvTier> tier, int64_t width, int64_t tile_rows);
  ~TiledStates() override;
  TiledStates(const TiledStates&) = delete;
  TiledStates& operator=(const TiledStates&) = delete;

  // A step of `rows` rows begins; its tiles are in `device`, [kTiles *
  // tile_rows, width], until EndStep. Errors: out_of_memory.
  absl::Status BeginStep(int64_t rows, float* device, Station station);
  // Nothing of a step is there any more, nor on its way.
  void EndStep();
  bool HasStep() const { return left_ != nullptr; }

  absl::StatusOr<float*> Begin(const RowBlock& block,
                               Cancelled cancelled) override;
  void Ask(const RowBlock& block) override;
  void End(const RowBlock& block) override;

  // Where the states of some rows, at most `tile_rows`, are on the device until
  // the next call, once the last layer has ended. Errors: copy_failed.
  absl::StatusOr<const float*> Rows(int64_t first, int64_t count);

  // Called between two blocks, it sends all below and frees the tiles; after
  // Resume, with memory as BeginStep's, the next Begin goes on. Errors:
  // copy_failed.
  absl::Status Suspend();
  void Resume(float* device) {
    device_ = device;
    is_suspended_ = false;
  }
  bool IsSuspended() const { return is_suspended_; }
  // Called between two layers, it gives the states behind `layer`, in the host
  // tier until the last reference ends, on this thread. Errors, after which the
  // step goes on: copy_failed, out_of_memory, cancelled.
  absl::StatusOr<std::shared_ptr<const HostRegion>> Hold(int layer,
                                                         Cancelled cancelled);
  // Writes bytes of the states that the first Begin will find, where that is of
  // another layer than 0. Errors: out_of_memory.
  absl::Status Put(int64_t offset, const std::byte* from, size_t bytes);

  int64_t StepBytes() const { return rows_ * RowBytes(); }
  // They count the bytes of all steps.
  int64_t up_bytes() const { return up_bytes_; }
  int64_t down_bytes() const { return down_bytes_; }

 private:
  using Ticket = CopyEngine::Ticket;

  struct Tile {
    RowBlock block = {};  // whose states these are; its layer is next
    bool there = false;   // they are, or come by `filled`
    bool wanted = false;  // asked for or begun, and not ended
    bool newer = false;   // than what is below
    uint64_t ended = 0;   // when, of all blocks
    Ticket emptied = 0;   // when what was in its place has left
    Ticket filled = 0;    // 0: nothing comes
  };

  CopyEngine& engine() { return *tier_->engine; }
  int64_t RowBytes() const {
    return width_ * static_cast<int64_t>(sizeof(float));
  }
  float* At(const Tile& tile) const {
    return device_ + (&tile - tiles_.data()) * tile_rows_ * width_;
  }
  Transfer Between(Direction direction, const RowBlock& block,
                   const HostRegion& region, const Tile& tile) const;
  Tile* Find(const RowBlock& block);
  void EnterLayer(int layer);
  void SendDown(Tile& tile);
  absl::Status Await(Tile& tile, Cancelled cancelled);
  absl::Status AwaitSent(Ticket before, Cancelled cancelled);
  absl::StatusOr<std::shared_ptr<HostRegion>> NewRegion();

  const std::shared_ptr<KvTier> tier_;
  const int64_t width_;
  const int64_t tile_rows_;

  int64_t rows_ = 0;
  float* device_ = nullptr;
  bool is_suspended_ = false;
  Station station_ = Station::kPrefill;
  std::array<Tile, kTiles> tiles_;
  uint64_t blocks_ended_ = 0;
  // What went down, in order, of which nobody knows yet how it went; and the
  // first error of the step's others.
  std::deque<Ticket> sent_;
  absl::Status lost_;
  // [rows, width]: what the current layer finds, and what it leaves. They are
  // one unless somebody holds what it finds.
  int layer_ = -1;  // -1: none yet
  std::shared_ptr<HostRegion> found_;
  std::shared_ptr<HostRegion> left_;
  std::shared_ptr<HostRegion> spare_;  // null: none

  int64_t up_bytes_ = 0;
  int64_t down_bytes_ = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_KV_TILED_STATES_H_
