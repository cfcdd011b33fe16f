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

// The hidden states of a prompt that has more rows than the device holds. All
// of them have room in the host tier, and the device has three tiles for one
// block of rows each. While one block passes through a layer the next two come
// up, and the one before goes down.
//
//   block         0      1      2      3      4
//   tile 0     computes  down   up 3  computes  ...
//   tile 1      up 1  computes  down   up 4
//   tile 2      up 2         computes  down
//
// A tile goes down when its place is wanted, so a step that fits into the tiles
// moves nothing. These copies are urgent: they do not wait for pages that were
// asked for before.
//
// Used from one thread. It copies through the engine of the sequence's tier.
class TiledStates final : public HiddenStates {
 public:
  static constexpr int kTiles = 1 + kAhead;

  // A row has `width` floats, and a block at most `tile_rows` rows.
  TiledStates(std::shared_ptr<KvTier> tier, int64_t width, int64_t tile_rows);
  ~TiledStates() override;
  TiledStates(const TiledStates&) = delete;
  TiledStates& operator=(const TiledStates&) = delete;

  // Begins a step of `rows` rows; its tiles are in `device`, [kTiles *
  // tile_rows, width], until EndStep. Errors: out_of_memory.
  absl::Status BeginStep(int64_t rows, DevicePtr<float> device, Phase phase);
  // Ends the step: drops its states, and waits until no copy is under way.
  void EndStep();
  bool HasStep() const { return left_ != nullptr; }

  absl::StatusOr<DevicePtr<float>> Begin(const RowBlock& block,
                                         Cancelled cancelled) override;
  void Ask(const RowBlock& block) override;
  void End(const RowBlock& block) override;

  // Returns the states of `count` rows, at most `tile_rows`, on the device,
  // once the last layer has ended. They stay until the next call. Errors:
  // copy_failed.
  absl::StatusOr<DevicePtr<const float>> Rows(int64_t first, int64_t count);

  // Called between two blocks, Suspend sends all states down and frees the
  // tiles. After Resume, with memory as for BeginStep, the next Begin goes on.
  // Errors: copy_failed.
  absl::Status Suspend();
  void Resume(DevicePtr<float> device) {
    device_ = device;
    is_suspended_ = false;
  }
  bool IsSuspended() const { return is_suspended_; }
  // Called between two layers, returns the states after `layer`, which stay in
  // the host tier until the last reference is dropped, on this thread. Errors,
  // after which the step goes on: copy_failed, out_of_memory, cancelled.
  absl::StatusOr<std::shared_ptr<const HostRegion>> Hold(int layer,
                                                         Cancelled cancelled);
  // Writes bytes of the states that the first Begin will find, if its layer is
  // not 0. Errors: out_of_memory.
  absl::Status Put(int64_t offset, const std::byte* from, size_t bytes);

  int64_t StepBytes() const { return rows_ * RowBytes(); }
  // The bytes that all steps have moved.
  int64_t up_bytes() const { return up_bytes_; }
  int64_t down_bytes() const { return down_bytes_; }

 private:
  using Ticket = CopyEngine::Ticket;

  struct Tile {
    RowBlock block = {};  // its rows; its layer is the one they enter next
    bool there = false;   // its states are here once `filled` is done
    bool wanted = false;  // it was asked for or begun, and has not ended
    bool newer = false;   // its states are newer than those below
    uint64_t ended = 0;   // number among all blocks that ended
    Ticket emptied = 0;   // the copy down of the tile's earlier states
    Ticket filled = 0;    // the copy up; 0: none is under way
  };

  CopyEngine& engine() { return *tier_->engine; }
  int64_t RowBytes() const {
    return width_ * static_cast<int64_t>(sizeof(float));
  }
  DevicePtr<float> At(const Tile& tile) const {
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
  DevicePtr<float> device_;
  bool is_suspended_ = false;
  Phase phase_ = Phase::kPrefill;
  std::array<Tile, kTiles> tiles_;
  uint64_t blocks_ended_ = 0;
  // Copies down that have not been waited for, in order; and the first error of
  // those that have.
  std::deque<Ticket> sent_;
  absl::Status lost_;
  // [rows, width]: the states that the current layer finds, and those that it
  // leaves. Both are one region unless the states that it finds are held.
  int layer_ = -1;  // -1: none yet
  std::shared_ptr<HostRegion> found_;
  std::shared_ptr<HostRegion> left_;
  std::shared_ptr<HostRegion> spare_;  // null: none

  int64_t up_bytes_ = 0;
  int64_t down_bytes_ = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_KV_TILED_STATES_H_
