#include "kernels/device/sim/bounded_memory.h"

#include <cstring>
#include <map>
#include <memory>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

TEST(BoundedMemoryTest, GivesItsBudgetAndNotAByteMore) {
  const std::unique_ptr<BoundedMemory> memory = *BoundedMemory::Create(1024);
  const absl::StatusOr<DevicePtr<std::byte>> all =
      memory->Allocate(1024, "all");
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(memory->free(), 0);
  const absl::Status status = memory->Allocate(1, "one more").status();
  EXPECT_EQ(CodeOf(status), "out_of_memory");
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(testing::HasSubstr("one more"),
                             testing::HasSubstr("need 1 bytes"),
                             testing::HasSubstr("0 of 1024")));
  memory->Free(*all, 1024);
  EXPECT_EQ(memory->free(), 1024);
  EXPECT_EQ(memory->used(), 0);
  EXPECT_FALSE(memory->Allocate(1025, "too much").ok());
  EXPECT_FALSE(memory->Allocate(SIZE_MAX, "all there is").ok());
}

TEST(BoundedMemoryTest, BlocksAreAlignedApartAndComeBackWhole) {
  constexpr int64_t kBudget = 1 << 16;
  const std::unique_ptr<BoundedMemory> memory = *BoundedMemory::Create(kBudget);
  struct Block {
    DevicePtr<std::byte> data;
    size_t bytes;
    int mark;
  };
  std::vector<Block> blocks;
  std::mt19937 random(1);
  for (int turn = 0; turn < 20000; ++turn) {
    if (random() % 2 == 0 || blocks.empty()) {
      const size_t bytes = 1 + random() % 3000;
      const absl::StatusOr<DevicePtr<std::byte>> data =
          memory->Allocate(bytes, "a block");
      if (!data.ok()) continue;
      ASSERT_TRUE(data->IsAligned(64));
      std::memset(HostAddress(*data), turn % 251, bytes);
      blocks.push_back({*data, bytes, turn % 251});
    } else {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      const Block block = blocks.back();
      blocks.pop_back();
      for (size_t i = 0; i < block.bytes; ++i) {
        ASSERT_EQ(HostAddress(block.data)[i],
                  static_cast<std::byte>(block.mark));
      }
      memory->Free(block.data, block.bytes);
    }
    ASSERT_LE(memory->used(), kBudget);
  }
  for (const Block& block : blocks) memory->Free(block.data, block.bytes);
  EXPECT_EQ(memory->used(), 0);
  // No hole is left.
  EXPECT_TRUE(DeviceArray<std::byte>::Create(*memory, kBudget, "all").ok());
}

// Freed blocks do not fragment the memory: one block may take all that is free.
TEST(BoundedMemoryTest, WhatFitsIsGiven) {
  const std::unique_ptr<BoundedMemory> memory = *BoundedMemory::Create(1 << 20);
  std::vector<DeviceArray<std::byte>> blocks;
  for (int i = 0; i < 16; ++i) {
    blocks.push_back(
        *DeviceArray<std::byte>::Create(*memory, 1 << 16, "a block"));
  }
  for (size_t i = 0; i < blocks.size(); i += 2) blocks[i] = {};
  EXPECT_EQ(memory->free(), 1 << 19);
  EXPECT_TRUE(DeviceArray<std::byte>::Create(*memory, 1 << 19, "half").ok());
}

TEST(BoundedMemoryTest, ArraysOfItEndWithTheirOwner) {
  const std::unique_ptr<BoundedMemory> memory = *BoundedMemory::Create(4096);
  {
    DeviceArray<float> a = *DeviceArray<float>::Create(*memory, 100, "a");
    EXPECT_EQ(memory->used(), 448);
    DeviceArray<float> b = std::move(a);
    EXPECT_TRUE(a.empty());
    HostAddress(b.data())[99] = 1;
    b = *DeviceArray<float>::Create(*memory, 0, "nothing");
  }
  EXPECT_EQ(memory->used(), 0);
  EXPECT_FALSE(DeviceArray<float>::Create(*memory, 1025, "a").ok());
}

}  // namespace
}  // namespace tiercel
