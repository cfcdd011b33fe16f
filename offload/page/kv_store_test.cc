#include "offload/page/kv_store.h"

#include <cstring>

#include "gtest/gtest.h"

namespace tiercel {
namespace {

constexpr KvLayout kLayout = {DType::kF32, DType::kF32, /*kv_heads=*/1,
                              /*head_dim=*/8};
constexpr int kLayers = 2;

std::shared_ptr<PagePool> MakePool(int64_t slots_per_segment = 4) {
  return std::make_shared<PagePool>(kLayout, kLayers, slots_per_segment);
}

// The first float of the K row of `position`.
float* Key(const KvStore& store, int layer, int64_t position) {
  const KvPages pages = store.Pages(layer);
  std::byte* page = pages.pages[position / kPageTokens - pages.first_page];
  return reinterpret_cast<float*>(
      page + kLayout.KOffset(0, static_cast<int>(position % kPageTokens)));
}

float Mark(int layer, int64_t position) {
  return static_cast<float>(1000 * layer) + static_cast<float>(position);
}

void Append(KvStore& store, int64_t rows) {
  ASSERT_TRUE(store.Reserve(rows).ok());
  for (int layer = 0; layer < kLayers; ++layer) {
    for (int64_t i = 0; i < rows; ++i) {
      *Key(store, layer, store.end() + i) = Mark(layer, store.end() + i);
    }
  }
  store.Commit(rows);
}

void ExpectIntact(const KvStore& store) {
  for (int layer = 0; layer < kLayers; ++layer) {
    for (int64_t at = store.begin(); at < store.end(); ++at) {
      ASSERT_EQ(*Key(store, layer, at), Mark(layer, at)) << layer << " " << at;
    }
  }
}

TEST(KvStoreTest, AppendsAcrossPagesAndSegments) {
  for (int64_t begin : {0, 5, 120000}) {
    KvStore store(MakePool(), begin);
    for (int64_t rows : {1, 126, 1, 1, 128, 700}) {
      Append(store, rows);
      ExpectIntact(store);
    }
    EXPECT_EQ(store.length(), 957);
    EXPECT_EQ(store.SweepBytesPerLayer(), 957 * 64);
  }
}

TEST(KvStoreTest, PagesOfALayerAreContiguousWithinASegment) {
  KvStore store(MakePool(), 0);
  Append(store, 4 * kPageTokens);
  const KvPages pages = store.Pages(1);
  for (int i = 1; i < 4; ++i) {
    EXPECT_EQ(pages.pages[i], pages.pages[i - 1] + kLayout.PageBytes());
  }
}

TEST(KvStoreTest, ReservedRowsAreNothingUntilCommitted) {
  KvStore store(MakePool(), 0);
  Append(store, 100);
  ASSERT_TRUE(store.Reserve(300).ok());
  EXPECT_EQ(store.length(), 100);
  store.Truncate(100);
  EXPECT_EQ(store.Pages(0).num_pages, 1);
  ExpectIntact(store);
}

TEST(KvStoreTest, TruncateReturnsPages) {
  const std::shared_ptr<PagePool> pool = MakePool();
  KvStore store(pool, 0);
  Append(store, 1000);
  EXPECT_EQ(pool->slots_in_use(), 8);
  store.Truncate(129);
  EXPECT_EQ(pool->slots_in_use(), 2);
  ExpectIntact(store);
  store.Truncate(128);
  EXPECT_EQ(pool->slots_in_use(), 1);
  Append(store, 50);
  ExpectIntact(store);
  store.Truncate(0);
  EXPECT_EQ(pool->slots_in_use(), 0);
}

TEST(KvStoreTest, TruncateToNothingFromMidPageBegin) {
  const std::shared_ptr<PagePool> pool = MakePool();
  KvStore store(pool, 70);
  Append(store, 10);
  store.Truncate(0);
  EXPECT_EQ(pool->slots_in_use(), 0);
  Append(store, 200);
  ExpectIntact(store);
}

TEST(KvStoreTest, ForkSharesPagesUntilOneWrites) {
  const std::shared_ptr<PagePool> pool = MakePool();
  KvStore store(pool, 0);
  Append(store, 300);  // the third page is open
  KvStore fork = store.Fork();
  EXPECT_EQ(pool->slots_in_use(), 3);
  Append(fork, 1);
  EXPECT_EQ(pool->slots_in_use(), 4);
  *Key(fork, 0, 300) = -1;
  Append(store, 10);
  EXPECT_EQ(pool->slots_in_use(), 4);
  ExpectIntact(store);
  EXPECT_EQ(*Key(fork, 0, 300), -1);
  fork.Truncate(300);
  ExpectIntact(fork);
}

TEST(KvStoreTest, ForkOutlivesItsOrigin) {
  const std::shared_ptr<PagePool> pool = MakePool();
  auto store = std::make_unique<KvStore>(pool, 3);
  Append(*store, 400);
  KvStore fork = store->Fork();
  store.reset();
  ExpectIntact(fork);
  Append(fork, 400);
  ExpectIntact(fork);
}

TEST(KvStoreTest, MoveLeavesNothingBehind) {
  const std::shared_ptr<PagePool> pool = MakePool();
  {
    KvStore store(pool, 0);
    Append(store, 200);
    KvStore moved = std::move(store);
    ExpectIntact(moved);
    EXPECT_EQ(pool->slots_in_use(), 2);
  }
  EXPECT_EQ(pool->slots_in_use(), 0);
}

TEST(KvStoreTest, RefusedMemoryLeavesTheSequenceAsItWas) {
  constexpr KvLayout kHuge = {DType::kF32, DType::kF32, /*kv_heads=*/1 << 10,
                              /*head_dim=*/1 << 16};
  // A segment of 2^47 bytes is more address space than a process has.
  auto pool = std::make_shared<PagePool>(kHuge, 1, int64_t{1} << 11);
  KvStore store(pool, 0);
  const absl::Status status = store.Reserve(1);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(store.length(), 0);
  EXPECT_EQ(store.Pages(0).num_pages, 0);
  EXPECT_EQ(pool->slots_in_use(), 0);
}

}  // namespace
}  // namespace tiercel
