#include "kernels/machine/device_memory.h"

#include <malloc.h>

#include <cstring>
#include <vector>

#include "gtest/gtest.h"

namespace tiercel {
namespace {

// Bytes that malloc has from the system, in use or not.
size_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.arena + info.hblkhd;
}

// Large blocks go back to the system at once, though small ones that are taken
// after them stay: malloc would keep them for itself.
TEST(DeviceMemoryTest, LargeBlocksAreTheSystems) {
  HeapMemory memory;
  const size_t before = HeapBytes();
  std::vector<DeviceArray<std::byte>> large;
  std::vector<DeviceArray<std::byte>> small;
  for (int64_t i = 0; i < 100; ++i) {
    large.push_back(
        *DeviceArray<std::byte>::Create(memory, (64 << 10) + i * 500, "large"));
    ASSERT_EQ(reinterpret_cast<uintptr_t>(large.back().data()) % 64, 0u);
    std::memset(large.back().data(), 7, large.back().size());
    small.push_back(*DeviceArray<std::byte>::Create(memory, 1000, "small"));
  }
  EXPECT_GT(memory.used(), 100 * (64 << 10));
  large.clear();
  EXPECT_EQ(memory.used(), 100 * 1024);
  EXPECT_LT(HeapBytes(), before + (1 << 20));
}

}  // namespace
}  // namespace tiercel
