#include "kernels/device/device_memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"

namespace tiercel {
namespace {

// The bytes that malloc has from the system, in use or not.
size_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.arena + info.hblkhd;
}

[[maybe_unused]] bool IsMapped(uintptr_t address) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  unsigned char resident = 0;
  return mincore(reinterpret_cast<void*>(address / page * page), page,
                 &resident) == 0;
}

// Large blocks go back to the system at once, even if small blocks that were
// taken after them stay; malloc would keep them.
TEST(DeviceMemoryTest, LargeBlocksAreTheSystems) {
  HeapMemory memory;
  const size_t before = HeapBytes();
  std::vector<DeviceArray<std::byte>> large;
  std::vector<DeviceArray<std::byte>> small;
  for (int64_t i = 0; i < 100; ++i) {
    large.push_back(
        *DeviceArray<std::byte>::Create(memory, (64 << 10) + i * 500, "large"));
    ASSERT_TRUE(large.back().data().IsAligned(64));
    std::memset(HostAddress(large.back().data()), 7, large.back().size());
    small.push_back(*DeviceArray<std::byte>::Create(memory, 1000, "small"));
  }
  EXPECT_GT(memory.used(), 100 * (64 << 10));
  std::vector<uintptr_t> places;
  for (const auto& block : large) {
    places.push_back(reinterpret_cast<uintptr_t>(HostAddress(block.data())));
  }
  large.clear();
#ifndef __SANITIZE_ADDRESS__
  for (const uintptr_t place : places) EXPECT_FALSE(IsMapped(place));
#endif
  EXPECT_EQ(memory.used(), 100 * 1024);
  EXPECT_LT(HeapBytes(), before + (1 << 20));
}

}  // namespace
}  // namespace tiercel
