#include "offload/move/pinned_blocks.h"

#include <atomic>
#include <memory>
#include <string_view>

#include "gtest/gtest.h"
#include "kernels/device/executor/hosted_stream.h"

namespace tiercel {
namespace {

constexpr int64_t kBlock = PinnedBlocks::kBlockBytes;
constexpr int64_t kFew = PinnedBlocks::kLargeRegion;

// A region of 20 blocks, the last of which has 4,096 bytes.
class PinnedBlocksTest : public testing::Test {
 protected:
  void TearDown() override {
    blocks_.Forget(region_);
    EXPECT_EQ(SimPinnedBytes(), 0);
  }
  bool Ask(int64_t block) {
    return blocks_.IsPinned(region_, region_.data(), block);
  }

  const HostRegion region_ = *HostRegion::Reserve(19 * kBlock + 4096);
  const std::unique_ptr<Stream> stream_ = MakeHostedStream(Order::kAscending);
  std::atomic<int> pins_ = 0;
  std::atomic<bool> refused_ = false;
  PinnedBlocks blocks_{std::make_shared<Placement>(&stream_->queue())};
  const SimFaults faults_{[this](std::string_view call) {
    if (call != "pin") return kCudaSuccess;
    ++pins_;
    return refused_ ? kCudaInvalidValue : kCudaSuccess;
  }};
};

TEST_F(PinnedBlocksTest, ASmallRegionHasWhatWasAskedFor) {
  for (int64_t block = 0; block < kFew; ++block) {
    EXPECT_TRUE(Ask(block));
    EXPECT_TRUE(Ask(block));
    EXPECT_EQ(pins_, block + 1);
  }
  EXPECT_EQ(SimPinnedBytes(), kFew * kBlock);
}

TEST_F(PinnedBlocksTest, ALargeOneHasAsManyAheadAsItHas) {
  // A block that is pinned already ends the run of those pinned ahead.
  EXPECT_TRUE(Ask(15));
  for (int64_t block = 0; block < kFew - 1; ++block) EXPECT_TRUE(Ask(block));
  EXPECT_EQ(pins_, kFew);
  EXPECT_TRUE(Ask(kFew));
  EXPECT_EQ(pins_, 15);  // blocks 8 to 14
  EXPECT_TRUE(Ask(14));
  EXPECT_EQ(pins_, 15);
  EXPECT_TRUE(Ask(16));  // ... 16 to 19
  EXPECT_EQ(pins_, 19);
  EXPECT_TRUE(Ask(19));
  EXPECT_EQ(pins_, 19);
  EXPECT_EQ(SimPinnedBytes(), 18 * kBlock + 4096);
}

TEST_F(PinnedBlocksTest, WhatIsRefusedIsNotAskedForAgain) {
  for (int64_t block = 0; block < kFew; ++block) EXPECT_TRUE(Ask(block));
  refused_ = true;
  EXPECT_FALSE(Ask(kFew));
  EXPECT_EQ(pins_, 2 * kFew);
  refused_ = false;
  EXPECT_FALSE(Ask(2 * kFew - 1));
  EXPECT_EQ(pins_, 2 * kFew);
  EXPECT_TRUE(Ask(2 * kFew));
  // A region that was forgotten is as a new one.
  blocks_.Forget(region_);
  EXPECT_EQ(SimPinnedBytes(), 0);
  pins_ = 0;
  EXPECT_TRUE(Ask(kFew));
  EXPECT_EQ(pins_, 1);
}

}  // namespace
}  // namespace tiercel
