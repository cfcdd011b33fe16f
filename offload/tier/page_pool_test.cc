#include "offload/tier/page_pool.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "offload/tier/memory_promise.h"

namespace tiercel {
namespace {

// The system gives zeros for what it took back.
TEST(PagePoolTest, TrimGivesBackFreeSlots) {
  // A page consists of whole pages of the system.
  constexpr KvLayout kLayout = {DType::kF32, DType::kF32, 1, 48};
  constexpr int kLayers = 2;
  const int64_t page_bytes = kLayout.PageBytes();
  ASSERT_EQ(page_bytes % sysconf(_SC_PAGESIZE), 0);
  const int64_t before = MemoryAccount::Unwritten();
  PagePool pool(kLayout, kLayers, /*slots_per_segment=*/4);
  const auto account =
      std::make_shared<MemoryAccount>([] { return int64_t{1} << 40; });
  pool.Promise(MemoryPromise(account, 10 * kLayers * page_bytes), 10);
  std::vector<int64_t> slots;
  for (int i = 0; i < 10; ++i) {
    slots.push_back(*pool.Take());
    for (int layer = 0; layer < kLayers; ++layer) {
      std::fill_n(pool.HostPage(layer, slots.back()), page_bytes, std::byte{7});
    }
  }
  pool.NoteWritten();
  EXPECT_EQ(MemoryAccount::Unwritten(), before);
  pool.AddReference(slots[5]);
  for (const int64_t slot : {0, 1, 3, 4, 5, 6, 9}) pool.Release(slot);
  pool.Trim();
  for (int64_t slot = 0; slot < 10; ++slot) {
    const bool kept = slot == 2 || slot == 5 || slot == 7 || slot == 8;
    for (int layer = 0; layer < kLayers; ++layer) {
      const std::byte* const page = pool.HostPage(layer, slot);
      EXPECT_EQ(std::count(page, page + page_bytes, std::byte{7}),
                kept ? page_bytes : 0)
          << slot;
    }
  }
  EXPECT_EQ(MemoryAccount::Unwritten() - before, 6 * kLayers * page_bytes);
  EXPECT_EQ(*pool.Take(), 0);
}

}  // namespace
}  // namespace tiercel
