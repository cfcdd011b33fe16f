// The link of a GPU, on the hosted device, which copies nothing before a caller
// waits for it.

#include "offload/move/gpu_link.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/device/executor/hosted_stream.h"
#include "lib/status/error.h"
#include "offload/move/copy_engine.h"

namespace tiercel {
namespace {

constexpr Direction kUp = Direction::kHostToDevice;
constexpr Direction kDown = Direction::kDeviceToHost;
constexpr int64_t kBlock = GpuLink::kGroupBytes;

// Counts the calls to the GPU, and refuses those that a test names.
struct Door {
  explicit Door(std::function<bool(std::string_view, int)> refuses = nullptr)
      : faults([this, refuses = std::move(refuses)](std::string_view call) {
          int& count = call == "pin"      ? pins
                       : call == "copy"   ? copies
                       : call == "launch" ? launches
                                          : waits;
          ++count;
          const bool refused = refuses != nullptr && refuses(call, count);
          return refused ? kCudaInvalidValue : kCudaSuccess;
        }) {}
  int pins = 0;
  int copies = 0;
  int launches = 0;
  int waits = 0;  // waits and all other calls
  SimFaults faults;
};

class GpuLinkTest : public testing::Test {
 protected:
  static constexpr int64_t kBytes = 2 * kBlock + 5000;

  void SetUp() override {
    region_ = *HostRegion::Reserve(kBytes);
    device_ = *DeviceArray<std::byte>::Create(stream_->memory(), kBytes, "x");
    other_ = *DeviceArray<std::byte>::Create(stream_->memory(), kBytes, "y");
    for (size_t i = 0; i < values_.size(); ++i) {
      values_[i] = static_cast<std::byte>(i * 31 % 251 + 1);
    }
    ASSERT_TRUE(
        stream_->Copy(device_.data(), values_.data(), values_.size()).ok());
    link_ = std::make_unique<GpuLink>(stream_->queue(), *OpenGpu(), placement_);
  }
  void TearDown() override {
    link_->Finish().IgnoreError();
    link_->Forget(region_);
    link_ = nullptr;
    EXPECT_EQ(SimPinnedBytes(), 0);
  }

  absl::Status Move(Direction direction, int64_t offset, int64_t bytes) {
    const DevicePtr<std::byte> device =
        (direction == kUp ? other_ : device_).data();
    const auto moved = link_->Copy(
        {direction, &region_, offset, device + offset, bytes}, {}, go_on_);
    if (!moved.ok()) return moved.status();
    EXPECT_EQ(moved->bytes, bytes);
    return absl::OkStatus();
  }
  // Moves all bytes down and up again.
  absl::Status ThereAndBack() {
    absl::Status status = link_->Await(link_->Mark());
    status.Update(Move(kDown, 0, kBytes));
    status.Update(Move(kUp, 0, kBytes));
    status.Update(link_->Finish().status());
    return status;
  }
  std::vector<std::byte> Arrived() {
    std::vector<std::byte> arrived(kBytes);
    EXPECT_TRUE(stream_->Copy(arrived.data(), other_.data(), kBytes).ok());
    EXPECT_TRUE(stream_->Synchronize().ok());
    return arrived;
  }

  const std::unique_ptr<Stream> stream_ = MakeHostedStream(Order::kAscending);
  const std::shared_ptr<Placement> placement_ =
      std::make_shared<Placement>(&stream_->queue());
  const std::atomic<bool> go_on_ = false;
  std::vector<std::byte> values_ = std::vector<std::byte>(kBytes);
  HostRegion region_;
  DeviceArray<std::byte> device_;
  DeviceArray<std::byte> other_;
  std::unique_ptr<GpuLink> link_;
};

TEST_F(GpuLinkTest, BlocksArePinnedOnceAndCopiedWhole) {
  const Door door;
  ASSERT_TRUE(ThereAndBack().ok());
  EXPECT_EQ(door.pins, 3);
  EXPECT_EQ(door.copies, 6);
  EXPECT_EQ(Arrived(), values_);
  EXPECT_TRUE(placement_->warnings().empty());
}

// A transfer over the border of two blocks is two copies.
TEST_F(GpuLinkTest, ACopyEndsWhereItsBlockEnds) {
  ASSERT_TRUE(link_->Await(link_->Mark()).ok());
  const Door door;
  ASSERT_TRUE(Move(kDown, kBlock - 100, 300).ok());
  ASSERT_TRUE(Move(kUp, kBlock - 100, 300).ok());
  ASSERT_TRUE(link_->Finish().ok());
  EXPECT_EQ(door.copies, 4);
  const std::vector<std::byte> arrived = Arrived();
  for (int64_t i = -101; i < 201; ++i) {
    const auto at = static_cast<size_t>(kBlock + i);
    const bool moved = i >= -100 && i < 200;
    EXPECT_EQ(arrived[at], moved ? values_[at] : std::byte{0xff}) << i;
  }
}

// Small copies share a group, without a wait between them.
TEST_F(GpuLinkTest, TwoGroupsAreOnTheirWay) {
  ASSERT_TRUE(link_->Await(link_->Mark()).ok());
  const Door door;
  ASSERT_TRUE(Move(kDown, 0, kBlock / 2).ok());
  ASSERT_TRUE(Move(kDown, kBlock / 2, kBlock / 2).ok());
  EXPECT_EQ(door.waits, 0);
  ASSERT_TRUE(Move(kDown, kBlock, kBlock).ok());
  EXPECT_EQ(door.waits, 2);  // a mark, and a wait for no earlier group
  ASSERT_TRUE(Move(kUp, 0, 1).ok());
  EXPECT_EQ(door.waits, 4);  // a mark, and a wait for the first group
  const std::byte* const arrived = region_.data();
  EXPECT_EQ(arrived[kBlock - 1], values_[kBlock - 1]);
  EXPECT_EQ(arrived[kBlock], std::byte{0});  // the second group is under way
}

TEST_F(GpuLinkTest, NothingHasArrivedBeforeFinish) {
  ASSERT_TRUE(link_->Await(link_->Mark()).ok());
  ASSERT_TRUE(Move(kDown, 0, 64).ok());
  ASSERT_TRUE(Move(kUp, 0, 64).ok());
  // Waiting for one of the two queues does not wait for the other.
  EXPECT_EQ(Arrived()[0], std::byte{0xff});
  ASSERT_TRUE(link_->Finish().ok());
  EXPECT_EQ(Arrived()[0], values_[0]);
}

// A layer's copies take tens of milliseconds: Finish sleeps until a mark is
// reached, as waiting for the whole queue may keep a processor busy.
TEST_F(GpuLinkTest, WhoWaitsForTheEndWaitsForAMark) {
  ASSERT_TRUE(Move(kDown, 0, 64).ok());
  std::vector<std::string> calls;
  SimFaults faults([&calls](std::string_view call) {
    calls.emplace_back(call);
    return kCudaSuccess;
  });
  EXPECT_TRUE(link_->Finish().ok());
  faults.End();
  EXPECT_EQ(calls, (std::vector<std::string>{"mark", "wait"}));
}

// H05: bytes that cannot be pinned go another way, with one warning.
TEST_F(GpuLinkTest, RefusedPinsTakeAnotherWay) {
  const auto refusals = {
      +[](int) { return true; },               // all: copies are pageable
      +[](int pin) { return pin <= 3; },       // all blocks, not the buffers
      +[](int pin) { return pin % 2 == 1; }};  // every second pin
  for (const auto& refuse : refusals) {
    const Door door([&](std::string_view call, int count) {
      return call == "pin" && refuse(count);
    });
    EXPECT_TRUE(ThereAndBack().ok());
    EXPECT_EQ(Arrived(), values_);
    EXPECT_EQ(placement_->warnings(),
              std::vector<std::string>{"host memory: not pinned, copies are "
                                       "slower (pin: CUDA error 1, "
                                       "refused by a test)"});
    link_->Forget(region_);
    ASSERT_TRUE(stream_->Zero(other_.data(), kBytes).ok());
    link_ = std::make_unique<GpuLink>(stream_->queue(), *OpenGpu(), placement_);
  }
}

// A small buffer is filled again only after its copy has ended.
TEST_F(GpuLinkTest, SmallCopiesTakeTurnsInTheBuffers) {
  ASSERT_TRUE(ThereAndBack().ok());
  link_->Forget(region_);
  ASSERT_TRUE(stream_->Zero(other_.data(), kBytes).ok());
  ASSERT_TRUE(stream_->Synchronize().ok());
  const Door door([](std::string_view call, int pin) {
    return call == "pin" && pin == 1;  // the block, not the buffers
  });
  constexpr int64_t kBytesOfOne = GpuLink::kSmallBytes + 1;
  for (int64_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(Move(kUp, kBytesOfOne * i, kBytesOfOne).ok());
  }
  ASSERT_TRUE(link_->Finish().ok());
  EXPECT_EQ(door.copies, 5);
  const std::vector<std::byte> arrived = Arrived();
  EXPECT_TRUE(std::equal(arrived.begin(), arrived.begin() + 5 * kBytesOfOne,
                         values_.begin()));
}

// ---- Packed copies ----

// Gathered chunks of any size and place are one launch and no copy.
TEST_F(GpuLinkTest, SmallCopiesUpAreOneLaunch) {
  ASSERT_TRUE(ThereAndBack().ok());
  ASSERT_TRUE(stream_->Zero(other_.data(), kBytes).ok());
  ASSERT_TRUE(stream_->Synchronize().ok());
  std::vector<std::byte> expected(kBytes);
  const Door door;
  int64_t bytes = 0;
  int64_t at = 3;
  for (int i = 0; i < 150; ++i) {
    const int64_t piece = i == 0 ? GpuLink::kSmallBytes : 1 + i * i % 977;
    ASSERT_TRUE(Move(kUp, at, piece).ok());
    std::copy_n(values_.begin() + at, piece, expected.begin() + at);
    bytes += piece;
    at += piece + 1 + i % 37;  // aligned or not
  }
  EXPECT_EQ(door.launches, 0);
  EXPECT_EQ(Arrived()[3], std::byte{0});
  ASSERT_TRUE(link_->Finish().ok());
  EXPECT_EQ(door.launches, 1);
  EXPECT_EQ(door.copies, 1);  // the one that Arrived makes
  EXPECT_EQ(Arrived(), expected);
}

// Copies that do not fit into one pack are several packs; a buffer is filled
// again only after its pack has been unpacked.
TEST_F(GpuLinkTest, PacksTakeTurnsInTheBuffers) {
  ASSERT_TRUE(ThereAndBack().ok());
  ASSERT_TRUE(stream_->Zero(other_.data(), kBytes).ok());
  ASSERT_TRUE(stream_->Synchronize().ok());
  const Door door;
  constexpr int64_t kPieces = 4 * GpuLink::kPackBytes / GpuLink::kSmallBytes;
  for (int64_t i = 0; i < kPieces; ++i) {
    ASSERT_TRUE(Move(kUp, i * GpuLink::kSmallBytes, GpuLink::kSmallBytes).ok());
  }
  ASSERT_TRUE(link_->Finish().ok());
  EXPECT_EQ(door.launches, 4);
  EXPECT_EQ(door.copies, 0);
  const std::vector<std::byte> arrived = Arrived();
  EXPECT_TRUE(std::equal(arrived.begin(),
                         arrived.begin() + 4 * GpuLink::kPackBytes,
                         values_.begin()));
}

TEST_F(GpuLinkTest, WhereKernelsSeeNoPinnedMemoryEachIsACopy) {
  ASSERT_TRUE(ThereAndBack().ok());
  const Door door([](std::string_view call, int) { return call == "see"; });
  for (int64_t i = 0; i < 5; ++i) ASSERT_TRUE(Move(kUp, 100 * i, 100).ok());
  ASSERT_TRUE(link_->Finish().ok());
  EXPECT_EQ(door.launches, 0);
  EXPECT_EQ(door.copies, 5);
  EXPECT_EQ(Arrived(), values_);
}

// The last run of a pack may begin in the middle of a packet; it still ends
// before the list.
TEST_F(GpuLinkTest, APackEndsBeforeItsList) {
  ASSERT_TRUE(ThereAndBack().ok());
  ASSERT_TRUE(stream_->Zero(other_.data(), kBytes).ok());
  ASSERT_TRUE(stream_->Synchronize().ok());
  constexpr int64_t kRuns = GpuLink::kPackBytes / GpuLink::kSmallBytes - 1;
  const int64_t first =
      15 - (reinterpret_cast<intptr_t>(HostAddress(other_.data())) + 15) % 16;
  int64_t at = first;
  for (int64_t i = 0; i < kRuns; ++i, at += GpuLink::kSmallBytes) {
    ASSERT_TRUE(Move(kUp, at, GpuLink::kSmallBytes).ok());
  }
  ASSERT_TRUE(Move(kUp, at, 1).ok());
  const int64_t last = at + 31;
  constexpr int64_t kLast = GpuLink::kSmallBytes - 17;
  ASSERT_TRUE(Move(kUp, last, kLast).ok());
  ASSERT_TRUE(link_->Finish().ok());
  const std::vector<std::byte> arrived = Arrived();
  for (int64_t i = last; i < last + kLast; ++i) {
    const auto byte = static_cast<size_t>(i);
    ASSERT_EQ(arrived[byte], values_[byte]) << i - last;
  }
}

// Copies of one group arrive in the order they were asked for, packed or not.
TEST_F(GpuLinkTest, PacksKeepTheirTurn) {
  ASSERT_TRUE(ThereAndBack().ok());
  const Door door;
  const auto up = [&](int64_t from, int64_t bytes) {
    ASSERT_TRUE(
        link_->Copy({kUp, &region_, from, other_.data(), bytes}, {}, go_on_)
            .ok());
  };
  up(7, 50);
  up(100000, 2 * GpuLink::kSmallBytes);
  up(9, 20);
  ASSERT_TRUE(link_->Finish().ok());
  EXPECT_EQ(door.launches, 2);
  const std::vector<std::byte> arrived = Arrived();
  EXPECT_EQ(arrived[0], values_[9]);
  EXPECT_EQ(arrived[19], values_[28]);
  EXPECT_EQ(arrived[20], values_[100020]);
  EXPECT_EQ(arrived[49], values_[100049]);
  // Bytes that are still coming down cannot be packed; their neighbours can.
  ASSERT_TRUE(Move(kDown, 1000, 100).ok());
  ASSERT_TRUE(Move(kUp, 1099, 10).ok());
  ASSERT_TRUE(Move(kUp, 1100, 10).ok());
  ASSERT_TRUE(link_->Finish().ok());
  EXPECT_EQ(door.launches, 3);
  ASSERT_TRUE(Move(kUp, 1099, 10).ok());
  ASSERT_TRUE(link_->Finish().ok());
  EXPECT_EQ(door.launches, 4);
}

TEST_F(GpuLinkTest, ALaunchThatFailsIsTold) {
  ASSERT_TRUE(ThereAndBack().ok());
  {
    const Door door(
        [](std::string_view call, int) { return call == "launch"; });
    ASSERT_TRUE(Move(kUp, 0, 100).ok());
    EXPECT_EQ(CodeOf(link_->Finish().status()), "device_failed");
  }
  ASSERT_TRUE(stream_->Zero(other_.data(), kBytes).ok());
  ASSERT_TRUE(stream_->Synchronize().ok());
  ASSERT_TRUE(Move(kUp, 0, 100).ok());
  ASSERT_TRUE(link_->Finish().ok());
  EXPECT_EQ(Arrived()[99], values_[99]);
}

// A launch that the next copy made, and that failed, is an error of Finish,
// too.
TEST_F(GpuLinkTest, ALaunchThatFailsEarlierIsToldAtTheEnd) {
  ASSERT_TRUE(ThereAndBack().ok());
  const Door door([](std::string_view call, int) { return call == "launch"; });
  ASSERT_TRUE(Move(kUp, 0, 100).ok());
  EXPECT_EQ(CodeOf(Move(kDown, 200, 100)), "device_failed");
  EXPECT_EQ(CodeOf(link_->Finish().status()), "device_failed");
  EXPECT_TRUE(link_->Finish().ok());
}

// H06: a copy that fails is an error of the caller that asked for it alone.
TEST_F(GpuLinkTest, AFailedCallIsToldAndTheNextGoesOn) {
  for (const std::string_view call : {"copy", "wait"}) {
    for (int at = 1; at <= 3; ++at) {
      {
        int seen = 0;
        const Door door([&](std::string_view asked, int) {
          return asked == call && ++seen == at;
        });
        EXPECT_EQ(CodeOf(ThereAndBack()), "device_failed") << call << at;
        link_->Finish().IgnoreError();
      }
      EXPECT_TRUE(ThereAndBack().ok());
      EXPECT_EQ(Arrived(), values_);
    }
  }
}

TEST_F(GpuLinkTest, WhatIsDroppedEndsSoon) {
  const std::atomic<bool> drop = true;
  const auto moved =
      link_->Copy({kDown, &region_, 0, device_.data(), kBytes}, {}, drop);
  ASSERT_TRUE(moved.ok());
  EXPECT_EQ(moved->bytes, 0);
  EXPECT_TRUE(link_->Finish().ok());
}

// ---- Under an engine ----

// Copies wait for queued work: a buffer is filled after the work that reads it,
// and sent after the work that writes it.
TEST_F(GpuLinkTest, CopiesFollowWhatWasToBeComputed) {
  const auto engine = *CopyEngine::Create(std::move(link_));
  ASSERT_TRUE(stream_->Zero(device_.data(), 64).ok());
  const auto down = engine->Submit(Phase::kPrefill,
                                   {{kDown, &region_, 0, device_.data(), 64}});
  ASSERT_TRUE(stream_->Copy(other_.data() + 64, device_.data() + 64, 64).ok());
  const auto up = engine->Submit(Phase::kVerify,
                                 {{kUp, &region_, 0, device_.data() + 64, 64}});
  ASSERT_TRUE(engine->Wait(down).ok());
  ASSERT_TRUE(engine->Wait(up).ok());
  EXPECT_EQ(Arrived()[64], values_[64]);
  ASSERT_TRUE(stream_->Copy(other_.data(), device_.data() + 64, 64).ok());
  EXPECT_EQ(Arrived()[0], std::byte{0});
  engine->Forget(region_);
  link_ = std::make_unique<GpuLink>(stream_->queue(), *OpenGpu(), placement_);
}

// The chunks of a layer are one submission: one launch, and every byte counted.
TEST_F(GpuLinkTest, ASubmissionOfSmallCopiesIsOneLaunch) {
  ASSERT_TRUE(ThereAndBack().ok());
  ASSERT_TRUE(stream_->Zero(other_.data(), kBytes).ok());
  ASSERT_TRUE(stream_->Synchronize().ok());
  const auto engine = *CopyEngine::Create(std::move(link_));
  std::vector<Transfer> chunks;
  for (int64_t i = 0; i < 64; ++i) {
    chunks.push_back({kUp, &region_, 1000 * i, other_.data() + 1000 * i, 136});
  }
  {
    const Door door;
    ASSERT_TRUE(engine->Wait(engine->Submit(Phase::kRefresh, chunks)).ok());
    EXPECT_EQ(door.launches, 1);
    EXPECT_EQ(door.copies, 0);
  }
  EXPECT_EQ(engine->ledger()[static_cast<size_t>(Phase::kRefresh)].h2d_bytes,
            64u * 136u);
  const std::vector<std::byte> arrived = Arrived();
  EXPECT_EQ(arrived[63135], values_[63135]);
  EXPECT_EQ(arrived[63136], std::byte{0});
  engine->Forget(region_);
  link_ = std::make_unique<GpuLink>(stream_->queue(), *OpenGpu(), placement_);
}

// An error of Finish, after all copies were made, is returned by Wait.
TEST_F(GpuLinkTest, AFailedFinishIsToldToWhoWaits) {
  const auto engine = *CopyEngine::Create(std::move(link_));
  for (int at = 1; at <= 2; ++at) {  // the wait for the mark, and Finish's
    int waits = 0;
    const Door door([&](std::string_view call, int) {
      return call == "wait" && ++waits == at;
    });
    EXPECT_EQ(CodeOf(engine->Wait(engine->Submit(
                  Phase::kVerify, {{kDown, &region_, 0, device_.data(), 64}}))),
              "device_failed")
        << at;
  }
  EXPECT_EQ(engine->ledger()[static_cast<size_t>(Phase::kVerify)].d2h_bytes,
            64u);
  engine->Forget(region_);
  link_ = std::make_unique<GpuLink>(stream_->queue(), *OpenGpu(), placement_);
}

}  // namespace
}  // namespace tiercel
