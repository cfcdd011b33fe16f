#include "offload/tier/host_region.h"

#include <cstdint>
#include <utility>

#include "gtest/gtest.h"

namespace tiercel {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

TEST(HostRegionTest, BeginsAtAHugePageWhereItHasRoomForOne) {
  for (const size_t bytes : {size_t{1}, size_t{4096}, kHugePage - 1, kHugePage,
                             kHugePage + 1, 3 * kHugePage + 12345}) {
    // There are several, so that not all are aligned by chance.
    HostRegion regions[3];
    for (HostRegion& region : regions) {
      region = *HostRegion::Reserve(bytes);
      EXPECT_EQ(region.bytes(), bytes);
      if (bytes >= kHugePage) {
        EXPECT_EQ(reinterpret_cast<uintptr_t>(region.data()) % kHugePage, 0u)
            << bytes;
      }
      // All of the region can be read, and is 0.
      const size_t places[] = {0, bytes / 2, bytes - 1};
      for (const size_t at : places) {
        EXPECT_EQ(region.data()[at], std::byte{0});
      }
      for (const size_t at : places) region.data()[at] = std::byte{7};
    }
    HostRegion moved = std::move(regions[1]);
    EXPECT_EQ(moved.data()[bytes - 1], std::byte{7});
  }
}

// UBSan sees a copy to or from null.
TEST(HostRegionTest, ARegionWithoutBytesCopiesNone) {
  const HostRegion region = *HostRegion::Reserve(0);
  std::byte one{7};
  region.Write(0, &one, 0);
  region.Read(0, &one, 0);
  EXPECT_EQ(one, std::byte{7});
}

}  // namespace
}  // namespace tiercel
