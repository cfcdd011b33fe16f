#include "offload/kv/tiled_states.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

constexpr auto kNever = [] { return false; };
constexpr CopyEngine::Ticket kAllTickets =
    std::numeric_limits<CopyEngine::Ticket>::max();

bool Overlap(const RowBlock& a, const RowBlock& b) {
  return a.row < b.end() && b.row < a.end();
}

}  // namespace

TiledStates::TiledStates(std::shared_ptr<KvTier> tier, int64_t width,
                         int64_t tile_rows)
    : tier_(std::move(tier)), width_(width), tile_rows_(tile_rows) {}

TiledStates::~TiledStates() { EndStep(); }

// ---- A step ----

absl::Status TiledStates::BeginStep(int64_t rows, DevicePtr<float> device,
                                    Phase phase) {
  EndStep();
  rows_ = rows;
  device_ = device;
  phase_ = phase;
  ASSIGN_OR_RETURN(std::shared_ptr<HostRegion> region, NewRegion());
  found_ = left_ = std::move(region);
  return absl::OkStatus();
}

void TiledStates::EndStep() {
  if (!HasStep()) return;
  for (Tile& tile : tiles_) engine().Drop(tile.filled);
  for (const Ticket ticket : sent_) engine().Drop(ticket);
  for (Tile& tile : tiles_) (void)engine().Wait(std::exchange(tile, {}).filled);
  for (const Ticket ticket : std::exchange(sent_, {})) {
    (void)engine().Wait(ticket);
  }
  lost_ = absl::OkStatus();
  is_suspended_ = false;
  layer_ = -1;
  found_.reset();
  left_.reset();
  spare_.reset();
}

absl::StatusOr<std::shared_ptr<HostRegion>> TiledStates::NewRegion() {
  ASSIGN_OR_RETURN(HostRegion region,
                   HostRegion::Reserve(static_cast<size_t>(StepBytes())));
  auto owned = std::make_unique<HostRegion>(std::move(region));
  return std::shared_ptr<HostRegion>(owned.release(),
                                     [tier = tier_](HostRegion* last) {
                                       tier->engine->Forget(*last);
                                       delete last;
                                     });
}

// ---- Block by block ----

absl::StatusOr<DevicePtr<float>> TiledStates::Begin(const RowBlock& block,
                                                    Cancelled cancelled) {
  if (block.rows > tile_rows_) {
    return InternalError("internal", absl::StrCat("a tile has ", tile_rows_,
                                                  " rows, got ", block.rows));
  }
  EnterLayer(block.layer);
  Ask(block);
  Tile& tile = *Find(block);
  RETURN_IF_ERROR(Await(tile, cancelled));
  return At(tile);
}

void TiledStates::EnterLayer(int layer) {
  if (layer == layer_) return;
  if (layer_ >= 0 && found_ != left_) spare_ = found_;
  found_ = left_;
  layer_ = layer;
}

TiledStates::Tile* TiledStates::Find(const RowBlock& block) {
  const auto found = std::find_if(
      tiles_.begin(), tiles_.end(),
      [&](const Tile& tile) { return tile.there && tile.block == block; });
  return found == tiles_.end() ? nullptr : &*found;
}

void TiledStates::Ask(const RowBlock& block) {
  if (Tile* const found = Find(block); found != nullptr) {
    found->wanted = true;
    return;
  }
  // Newer states of these rows go down first, so that they are what comes up.
  for (Tile& tile : tiles_) {
    if (tile.newer && Overlap(tile.block, block)) SendDown(tile);
  }
  Tile* place = nullptr;
  for (Tile& tile : tiles_) {
    if (tile.wanted) continue;
    if (place == nullptr || tile.ended < place->ended) place = &tile;
  }
  const bool sends = place->newer;
  if (sends) SendDown(*place);
  const Ticket emptied = sends ? sent_.back() : 0;
  *place = {};
  Ticket filled = 0;
  if (block.layer > 0) {
    const HostRegion& from = block.layer == layer_ ? *found_ : *left_;
    up_bytes_ += block.rows * RowBytes();
    filled = engine().Submit(
        phase_, {Between(Direction::kHostToDevice, block, from, *place)},
        CopyEngine::Turn::kUrgent);
  }
  *place = {.block = block,
            .there = true,
            .wanted = true,
            .emptied = emptied,
            .filled = filled};
}

void TiledStates::End(const RowBlock& block) {
  Tile& tile = *Find(block);
  ++tile.block.layer;
  tile.wanted = false;
  tile.newer = true;
  tile.ended = ++blocks_ended_;
}

void TiledStates::SendDown(Tile& tile) {
  down_bytes_ += tile.block.rows * RowBytes();
  sent_.push_back(0);  // allocates before the copy begins
  sent_.back() = engine().Submit(
      phase_, {Between(Direction::kDeviceToHost, tile.block, *left_, tile)},
      CopyEngine::Turn::kUrgent);
  tile.newer = false;
}

Transfer TiledStates::Between(Direction direction, const RowBlock& block,
                              const HostRegion& region,
                              const Tile& tile) const {
  return {.direction = direction,
          .host = &region,
          .offset = block.row * RowBytes(),
          .device = At(tile).As<std::byte>(),
          .bytes = block.rows * RowBytes()};
}

// The engine fills a tile after its earlier states have left. States that come
// up are right only if every earlier copy down has succeeded.
absl::Status TiledStates::Await(Tile& tile, Cancelled cancelled) {
  if (tile.filled == 0) return AwaitSent(tile.emptied + 1, cancelled);
  const absl::Status filled = engine().Wait(tile.filled, cancelled);
  if (ClassOf(filled) == ErrorClass::kCancelled) return filled;
  const Ticket before = std::exchange(tile.filled, 0);
  if (!filled.ok()) return filled;
  return AwaitSent(before, kNever);
}

absl::Status TiledStates::AwaitSent(Ticket before, Cancelled cancelled) {
  while (!sent_.empty() && sent_.front() < before) {
    const absl::Status arrived = engine().Wait(sent_.front(), cancelled);
    if (ClassOf(arrived) == ErrorClass::kCancelled) return arrived;
    sent_.pop_front();
    lost_.Update(arrived);
  }
  return lost_;
}

// ---- After the last layer ----

absl::StatusOr<DevicePtr<const float>> TiledStates::Rows(int64_t first,
                                                         int64_t count) {
  const RowBlock rows = {.layer = layer_ + 1, .row = first, .rows = count};
  for (Tile& tile : tiles_) {
    if (tile.there && tile.block.layer == rows.layer &&
        tile.block.row <= first && rows.end() <= tile.block.end()) {
      return At(tile) + (first - tile.block.row) * width_;
    }
  }
  Ask(rows);
  Tile& tile = *Find(rows);
  tile.wanted = false;
  tile.ended = ++blocks_ended_;
  if (absl::Status s = Await(tile, kNever); !s.ok()) {
    tile.there = false;
    return s;
  }
  return At(tile);
}

// ---- A step that stops, and one that is held ----

absl::Status TiledStates::Suspend() {
  for (Tile& tile : tiles_) {
    if (tile.newer) SendDown(tile);
    engine().Drop(tile.filled);
  }
  for (Tile& tile : tiles_) (void)engine().Wait(std::exchange(tile, {}).filled);
  const absl::Status status = AwaitSent(kAllTickets, kNever);
  is_suspended_ = status.ok();
  return status;
}

absl::StatusOr<std::shared_ptr<const HostRegion>> TiledStates::Hold(
    int layer, Cancelled cancelled) {
  for (Tile& tile : tiles_) {
    if (tile.newer) SendDown(tile);
  }
  RETURN_IF_ERROR(AwaitSent(kAllTickets, cancelled));
  EnterLayer(layer + 1);
  if (found_ == left_) {
    if (spare_ != nullptr && spare_.use_count() == 1) {
      left_ = std::move(spare_);
    } else {
      ASSIGN_OR_RETURN(left_, NewRegion());
    }
  }
  return found_;
}

absl::Status TiledStates::Put(int64_t offset, const std::byte* from,
                              size_t bytes) {
  left_->Write(offset, from, bytes);
  return absl::OkStatus();
}

}  // namespace tiercel
