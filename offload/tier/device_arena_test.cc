#include "offload/tier/device_arena.h"

#include <cstring>
#include <map>
#include <memory>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/error.h"

namespace tiercel {
namespace {

TEST(DeviceArenaTest, GivesItsBudgetAndNotAByteMore) {
  const std::unique_ptr<DeviceArena> arena = *DeviceArena::Create(1024);
  const absl::StatusOr<std::byte*> all = arena->Allocate(1024, "all");
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(arena->free(), 0);
  const absl::Status status = arena->Allocate(1, "one more").status();
  EXPECT_EQ(CodeOf(status), "out_of_memory");
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(testing::HasSubstr("one more"),
                             testing::HasSubstr("need 1 bytes"),
                             testing::HasSubstr("0 of 1024")));
  arena->Free(*all, 1024);
  EXPECT_EQ(arena->free(), 1024);
  EXPECT_EQ(arena->used(), 0);
  EXPECT_FALSE(arena->Allocate(1025, "too much").ok());
  EXPECT_FALSE(arena->Allocate(SIZE_MAX, "all there is").ok());
}

TEST(DeviceArenaTest, BlocksAreAlignedApartAndComeBackWhole) {
  constexpr int64_t kBudget = 1 << 16;
  const std::unique_ptr<DeviceArena> arena = *DeviceArena::Create(kBudget);
  struct Block {
    std::byte* data;
    size_t bytes;
    int mark;
  };
  std::vector<Block> blocks;
  std::mt19937 random(1);
  for (int turn = 0; turn < 20000; ++turn) {
    if (random() % 2 == 0 || blocks.empty()) {
      const size_t bytes = 1 + random() % 3000;
      const absl::StatusOr<std::byte*> data = arena->Allocate(bytes, "a block");
      if (!data.ok()) continue;
      ASSERT_EQ(reinterpret_cast<uintptr_t>(*data) % 64, 0u);
      std::memset(*data, turn % 251, bytes);
      blocks.push_back({*data, bytes, turn % 251});
    } else {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      const Block block = blocks.back();
      blocks.pop_back();
      for (size_t i = 0; i < block.bytes; ++i) {
        ASSERT_EQ(block.data[i], static_cast<std::byte>(block.mark));
      }
      arena->Free(block.data, block.bytes);
    }
    ASSERT_LE(arena->used(), kBudget);
  }
  for (const Block& block : blocks) arena->Free(block.data, block.bytes);
  EXPECT_EQ(arena->used(), 0);
  EXPECT_TRUE(arena->Allocate(kBudget, "all").ok());  // no hole is left
}

TEST(DeviceArenaTest, ArraysOfItEndWithTheirOwner) {
  const std::unique_ptr<DeviceArena> arena = *DeviceArena::Create(4096);
  {
    DeviceArray<float> a = *DeviceArray<float>::Create(*arena, 100, "a");
    EXPECT_EQ(arena->used(), 448);
    DeviceArray<float> b = std::move(a);
    EXPECT_TRUE(a.empty());
    b.data()[99] = 1;
    b = *DeviceArray<float>::Create(*arena, 0, "nothing");
  }
  EXPECT_EQ(arena->used(), 0);
  EXPECT_FALSE(DeviceArray<float>::Create(*arena, 1025, "a").ok());
}

}  // namespace
}  // namespace tiercel
