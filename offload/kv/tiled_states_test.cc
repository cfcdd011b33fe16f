#include "offload/kv/tiled_states.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "offload/kv/kv_store_for_test.h"

namespace tiercel::tiled_states_test {
namespace {

using kv_store_test::kGoOn;
using kv_store_test::Made;
using kv_store_test::Make;

constexpr int kLayers = 4;
constexpr int64_t kWidth = 24;
constexpr int64_t kTileRows = 10;
constexpr int64_t kRowBytes = kWidth * static_cast<int64_t>(sizeof(float));
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// Element `i` of a row that has passed `layers` layers.
float Element(int layers, int64_t row, int64_t i) {
  return static_cast<float>(row * kWidth + i) +
         0.125f * static_cast<float>(layers);
}

// Steps of any number of rows on a device with three tiles.
class Steps {
 public:
  explicit Steps(int64_t fail_at = kNever, double rate = 1e12)
      : Steps(Make(/*resident=*/0, 0, fail_at, rate)) {}
  explicit Steps(Made made)
      : made_(std::move(made)),
        device_(static_cast<size_t>(TiledStates::kTiles * kTileRows * kWidth)),
        states_(made_.tier, kWidth, kTileRows) {}

  absl::Status Begin(int64_t rows) {
    rows_ = rows;
    next_ = 0;
    return states_.BeginStep(rows, InPlace(device_.data()), Phase::kPrefill);
  }
  int64_t BlocksOfLayer() const { return (rows_ + kTileRows - 1) / kTileRows; }
  int64_t Blocks() const { return kLayers * BlocksOfLayer(); }
  RowBlock Block(int64_t index) const {
    const int64_t row = index % BlocksOfLayer() * kTileRows;
    return {static_cast<int>(index / BlocksOfLayer()), row,
            std::min(kTileRows, rows_ - row)};
  }
  // Passes the blocks from the next up to number `end` of all. Expects every
  // one to find what the layer before has left.
  absl::Status PassUpTo(int64_t end,
                        HiddenStates::Cancelled cancelled = kGoOn) {
    for (; next_ < end; ++next_) {
      const RowBlock block = Block(next_);
      const absl::StatusOr<DevicePtr<float>> states =
          states_.Begin(block, cancelled);
      if (!states.ok()) return states.status();
      for (int64_t k = 1; k <= HiddenStates::kAhead; ++k) {
        if (next_ + k >= Blocks()) break;
        const RowBlock ahead = Block(next_ + k);
        if (ahead.layer > block.layer && ahead.end() > block.row) break;
        states_.Ask(ahead);
      }
      if (block.layer > 0)
        Expect(HostAddress(*states), block.layer, block.row, block.rows);
      for (int64_t at = 0; at < block.rows * kWidth; ++at) {
        HostAddress(*states)[at] =
            Element(block.layer + 1, block.row + at / kWidth, at % kWidth);
      }
      states_.End(block);
    }
    return absl::OkStatus();
  }
  absl::Status Pass() { return PassUpTo(Blocks()); }
  absl::Status Read(int64_t first, int64_t count) {
    const absl::StatusOr<DevicePtr<const float>> rows =
        states_.Rows(first, count);
    if (!rows.ok()) return rows.status();
    Expect(HostAddress(*rows), kLayers, first, count);
    return absl::OkStatus();
  }
  // Expects `region` to have the states of all rows after `layers` layers.
  static void ExpectHeld(const HostRegion& region, int layers, int64_t rows) {
    std::vector<float> held(static_cast<size_t>(rows * kWidth));
    region.Read(0, reinterpret_cast<std::byte*>(held.data()),
                held.size() * sizeof(float));
    Expect(held.data(), layers, 0, rows);
  }
  int64_t MovedUp() const { return kv_store_test::MovedUp(made_); }
  int64_t MovedDown() const {
    return static_cast<int64_t>(
        made_.tier->engine->ledger()[static_cast<size_t>(Phase::kPrefill)]
            .d2h_bytes);
  }

  Made made_;
  std::vector<float> device_;
  TiledStates states_;
  int64_t rows_ = 0;
  int64_t next_ = 0;  // the number of the next block

 private:
  static void Expect(const float* states, int layers, int64_t first,
                     int64_t count) {
    for (int64_t at = 0; at < count * kWidth; ++at) {
      ASSERT_EQ(states[at], Element(layers, first + at / kWidth, at % kWidth))
          << "behind layer " << layers << ", row " << first + at / kWidth;
    }
  }
};

TEST(TiledStatesTest, EveryLayerFindsWhatTheOneBeforeLeft) {
  // On the slow link, states are still on their way down when their tile is
  // wanted.
  Steps fast;
  Steps slow(kNever, /*rate=*/1e7);
  for (Steps* const either : {&fast, &slow}) {
    Steps& steps = *either;
    for (const int64_t rows : {31, 40, 47, 200, 35}) {
      const int64_t up = steps.MovedUp();
      const int64_t down = steps.MovedDown();
      ASSERT_TRUE(steps.Begin(rows).ok());
      ASSERT_TRUE(steps.Pass().ok());
      // By the formula of KV_FORMAT.md the last three blocks stay.
      const int64_t stay = rows - (steps.BlocksOfLayer() - 3) * kTileRows;
      EXPECT_EQ(steps.MovedUp() - up, rows * (kLayers - 1) * kRowBytes) << rows;
      EXPECT_EQ(steps.MovedDown() - down, (rows * kLayers - stay) * kRowBytes)
          << rows;
      EXPECT_EQ(steps.states_.up_bytes(), steps.MovedUp());
      EXPECT_EQ(steps.states_.down_bytes(), steps.MovedDown());
      for (int64_t first = 0; first < rows; first += 7) {
        ASSERT_TRUE(
            steps.Read(first, std::min<int64_t>(10, rows - first)).ok());
      }
      ASSERT_TRUE(steps.Read(rows - 1, 1).ok());
    }
  }
}

TEST(TiledStatesTest, WhatStaysOnTheDeviceMovesNothing) {
  Steps steps;
  ASSERT_TRUE(steps.Begin(30).ok());
  ASSERT_TRUE(steps.Pass().ok());
  ASSERT_TRUE(steps.Read(20, 10).ok());
  EXPECT_EQ(steps.MovedUp(), 0);
  EXPECT_EQ(steps.MovedDown(), 0);
  // Rows that lie in two tiles come up as one block.
  ASSERT_TRUE(steps.Read(5, 10).ok());
  EXPECT_EQ(steps.MovedDown(), 20 * kRowBytes);
  EXPECT_EQ(steps.MovedUp(), 10 * kRowBytes);
}

// Later layers may divide the rows into other blocks, and leave rows out.
TEST(TiledStatesTest, LayersMayHaveOtherBlocks) {
  Steps steps;
  ASSERT_TRUE(steps.Begin(40).ok());
  ASSERT_TRUE(steps.PassUpTo(4).ok());
  for (int layer = 1; layer < kLayers; ++layer) {
    for (const auto& [row, rows] : {std::pair(2, 3), std::pair(33, 7)}) {
      const RowBlock block = {layer, row, rows};
      const absl::StatusOr<DevicePtr<float>> states =
          steps.states_.Begin(block, kGoOn);
      ASSERT_TRUE(states.ok());
      for (int64_t at = 0; at < rows * kWidth; ++at) {
        float& element = HostAddress(*states)[at];
        ASSERT_EQ(element, Element(layer, row + at / kWidth, at % kWidth));
        element = Element(layer + 1, row + at / kWidth, at % kWidth);
      }
      steps.states_.End(block);
    }
  }
  ASSERT_TRUE(steps.Read(33, 7).ok());
  ASSERT_TRUE(steps.Read(2, 3).ok());
}

// Until it is opened, a link that holds a page back until there is a tile to be
// copied, and expects that tile to be the next copy.
class GateLink final : public Link {
 public:
  static constexpr int64_t kPage = 1 << 20;
  static constexpr int64_t kPages = 100;

  absl::StatusOr<Moved> Copy(const Transfer& transfer, Clock::Time since,
                             const std::atomic<bool>& drop) override {
    if (transfer.bytes != kPage) {
      tile_is_next_ = false;
      tile_bytes_ += transfer.bytes;
    } else if (!open_) {
      EXPECT_FALSE(tile_is_next_) << "tiles wait for pages";
      while (!HasTile() && !open_) std::this_thread::yield();
      tile_is_next_ = HasTile();
    }
    return link_.Copy(transfer, since, drop);
  }
  void Forget(const HostRegion& region) override { link_.Forget(region); }
  void Open() { open_ = true; }

  std::atomic<const CopyEngine*> engine = nullptr;

 private:
  // The ledger counts copies as soon as they are asked for.
  bool HasTile() const {
    const LinkUse use =
        engine.load()->ledger()[static_cast<size_t>(Phase::kPrefill)];
    return static_cast<int64_t>(use.h2d_bytes + use.d2h_bytes) >
           kPages * kPage + tile_bytes_;
  }

  HostLink link_;
  std::atomic<bool> open_{false};
  bool tile_is_next_ = false;
  int64_t tile_bytes_ = 0;  // bytes of tiles copied
};

TEST(TiledStatesTest, PagesDoNotHoldThemUp) {
  auto link = std::make_unique<GateLink>();
  GateLink* const gate = link.get();
  TierForTest tier(kv_store_test::kLayout, kv_store_test::kLayers, 1, 0,
                   std::move(link));
  Made made;
  made.memory = std::move(tier.memory);
  made.tier = std::move(tier.tier);
  Steps steps(std::move(made));
  std::vector<std::byte> page(GateLink::kPage);
  const HostRegion below = *HostRegion::Reserve(page.size());
  CopyEngine& engine = *steps.made_.tier->engine;
  gate->engine = &engine;
  const CopyEngine::Ticket pages =
      engine.Submit(Phase::kPrefill, {100,
                                      {.direction = Direction::kDeviceToHost,
                                       .host = &below,
                                       .device = InPlace(page.data()),
                                       .bytes = GateLink::kPage}});
  ASSERT_TRUE(steps.Begin(70).ok());
  ASSERT_TRUE(steps.Pass().ok());
  EXPECT_FALSE(engine.Done(pages));
  gate->Open();
  ASSERT_TRUE(engine.Wait(pages).ok());
  engine.Forget(below);
}

TEST(TiledStatesTest, AStepGoesOnWhereverItWasStopped) {
  Steps steps;
  for (int64_t stop = 0; stop < 4 * 5; ++stop) {
    ASSERT_TRUE(steps.Begin(44).ok());
    ASSERT_TRUE(steps.PassUpTo(stop).ok());
    // The step may stop after a block has begun.
    if (stop % 2 == 1) {
      ASSERT_TRUE(steps.states_.Begin(steps.Block(stop), kGoOn).ok());
    }
    ASSERT_TRUE(steps.states_.Suspend().ok());
    std::fill(steps.device_.begin(), steps.device_.end(), -1.0f);
    ASSERT_TRUE(steps.Pass().ok()) << stop;
    ASSERT_TRUE(steps.Read(0, 10).ok());
  }
}

// A step that is cancelled while it waits for a slow link can go on.
TEST(TiledStatesTest, ACancelledStepGoesOn) {
  Steps steps(kNever, /*rate=*/2e5);
  ASSERT_TRUE(steps.Begin(60).ok());
  ASSERT_TRUE(steps.PassUpTo(7).ok());
  absl::Status status;
  int asked = 0;
  while (status.ok() && steps.next_ < steps.Blocks()) {
    status = steps.PassUpTo(steps.next_ + 1, [&] { return ++asked > 0; });
  }
  ASSERT_EQ(ClassOf(status), ErrorClass::kCancelled);
  ASSERT_TRUE(steps.states_.Suspend().ok());
  ASSERT_TRUE(steps.Pass().ok());
  ASSERT_TRUE(steps.Read(0, 10).ok());
}

// Every copy of a step may fail: that step fails, the next does not. Only the
// copies of the two blocks that were coming up when the step stopped may fail
// unnoticed.
TEST(TiledStatesTest, NothingIsReadThatGotLost) {
  int failures = 0;
  int unnoticed = 0;
  for (int64_t fail_at = 0;; ++fail_at) {
    Steps steps(fail_at);
    ASSERT_TRUE(steps.Begin(44).ok());
    absl::Status status = steps.PassUpTo(12);
    status.Update(steps.states_.Suspend());
    if (status.ok()) status = steps.Pass();
    for (int64_t row = 0; status.ok() && row < 44; row += 11) {
      status = steps.Read(row, 10);
    }
    if (!steps.made_.copy->happened()) {
      EXPECT_TRUE(status.ok()) << status;
      break;
    }
    if (status.ok()) {
      ++unnoticed;
    } else {
      EXPECT_EQ(CodeOf(status), "copy_failed") << fail_at;
      ++failures;
    }
    ASSERT_TRUE(steps.Begin(44).ok());
    ASSERT_TRUE(steps.Pass().ok());
    ASSERT_TRUE(steps.Read(0, 10).ok());
  }
  EXPECT_GT(failures, 30);
  EXPECT_LE(unnoticed, 2);
}

// The states after a layer stay as they were while they are held, even as the
// step goes on.
TEST(TiledStatesTest, WhatIsHeldStays) {
  Steps steps;
  for (const int64_t rows : {20, 44, 100}) {
    ASSERT_TRUE(steps.Begin(rows).ok());
    std::vector<std::shared_ptr<const HostRegion>> held;
    for (int layer = 0; layer + 1 < kLayers; ++layer) {
      ASSERT_TRUE(steps.PassUpTo((layer + 1) * steps.BlocksOfLayer()).ok());
      // A region that is released is used again.
      if (layer == 1 && rows != 44) held.front().reset();
      auto states = steps.states_.Hold(layer, kGoOn);
      ASSERT_TRUE(states.ok()) << states.status();
      held.push_back(*std::move(states));
    }
    ASSERT_TRUE(steps.Pass().ok());
    for (int layer = rows == 44 ? 0 : 1; layer + 1 < kLayers; ++layer) {
      Steps::ExpectHeld(*held[static_cast<size_t>(layer)], layer + 1, rows);
    }
    ASSERT_TRUE(steps.Read(0, 10).ok());
    // Held states outlive the step.
    ASSERT_TRUE(steps.Begin(60).ok());
    ASSERT_TRUE(steps.Pass().ok());
    Steps::ExpectHeld(*held.back(), kLayers - 1, rows);
  }
}

// The states of a step that has stopped before a layer can be held, and the
// step goes on.
TEST(TiledStatesTest, WhatWasStoppedIsHeldToo) {
  Steps steps;
  ASSERT_TRUE(steps.Begin(44).ok());
  ASSERT_TRUE(steps.PassUpTo(2 * steps.BlocksOfLayer()).ok());
  ASSERT_TRUE(steps.states_.Suspend().ok());
  const auto held = steps.states_.Hold(1, kGoOn);
  ASSERT_TRUE(held.ok());
  ASSERT_TRUE(steps.Pass().ok());
  Steps::ExpectHeld(**held, 2, 44);
}

TEST(TiledStatesTest, AStepBeginsWithStatesFromElsewhere) {
  Steps steps;
  ASSERT_TRUE(steps.Begin(44).ok());
  std::vector<float> states;
  for (int64_t at = 0; at < 44 * kWidth; ++at) {
    states.push_back(Element(2, at / kWidth, at % kWidth));
  }
  const auto* const bytes = reinterpret_cast<const std::byte*>(states.data());
  const auto half = static_cast<size_t>(22 * kRowBytes);
  ASSERT_TRUE(steps.states_.Put(22 * kRowBytes, bytes + half, half).ok());
  ASSERT_TRUE(steps.states_.Put(0, bytes, half).ok());
  steps.next_ = 2 * steps.BlocksOfLayer();
  ASSERT_TRUE(steps.Pass().ok());
  ASSERT_TRUE(steps.Read(0, 10).ok());
  EXPECT_EQ(steps.states_.up_bytes(), (2 * 44 + 10) * kRowBytes);
}

}  // namespace
}  // namespace tiercel::tiled_states_test
