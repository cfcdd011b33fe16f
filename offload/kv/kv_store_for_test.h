#ifndef TIERCEL_OFFLOAD_KV_KV_STORE_FOR_TEST_H_
#define TIERCEL_OFFLOAD_KV_KV_STORE_FOR_TEST_H_

// Stores of both kinds, and an oracle that has the expected contents of a
// sequence, by position.

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/device/sim/bounded_memory.h"
#include "kernels/system/faults.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "offload/kv/in_place_kv.h"
#include "offload/kv/kv_store.h"
#include "offload/kv/kv_tier_for_test.h"
#include "offload/kv/tiered_kv.h"

namespace tiercel::kv_store_test {

inline constexpr KvLayout kLayout = {DType::kF32, DType::kF16, /*kv_heads=*/2,
                                     /*head_dim=*/8};
inline constexpr int kLayers = 3;
inline constexpr int64_t kContextPages = 12;
inline constexpr auto kGoOn = [] { return false; };

struct Made {
  std::unique_ptr<BoundedMemory> memory;
  std::shared_ptr<KvTier> tier;       // null: the store is an InPlaceKv
  std::unique_ptr<FailingCall> copy;  // the link's
  std::shared_ptr<PagePool> pool;
  std::unique_ptr<KvStore> kv;

  int64_t HostSlots() const {
    return tier != nullptr ? tier->pool.slots_in_use() : pool->slots_in_use();
  }
};

// Makes an InPlaceKv if resident < 0, else a TieredKv, over a link whose copy
// number `fail_at`, counted from 0, fails.
inline Made Make(int64_t resident, int64_t begin,
                 int64_t fail_at = std::numeric_limits<int64_t>::max(),
                 double rate = 1e12) {
  Made made;
  if (resident < 0) {
    made.pool = std::make_shared<PagePool>(kLayout, kLayers, 4);
    made.kv = std::make_unique<InPlaceKv>(made.pool, begin);
    return made;
  }
  made.copy = std::make_unique<FailingCall>(Callee::kLink, "copy");
  if (fail_at < FailAt::kAll) made.copy->Arm(fail_at + 1);
  TierForTest on_device(kLayout, kLayers, kContextPages, resident,
                        std::make_unique<SimulatedLink>(rate, /*latency=*/0));
  made.memory = std::move(on_device.memory);
  made.tier = std::move(on_device.tier);
  made.kv = std::make_unique<TieredKv>(made.tier, begin);
  return made;
}

inline int64_t MovedUp(const Made& made) {
  uint64_t bytes = 0;
  for (const LinkUse& use : made.tier->engine->ledger()) bytes += use.h2d_bytes;
  return static_cast<int64_t>(bytes);
}

inline float* KeyOf(const KvPages& pages, int head, int64_t position) {
  const DevicePtr<std::byte> page =
      pages.pages[position / kPageTokens - pages.first_page];
  const auto cell = static_cast<int>(position % kPageTokens);
  return HostAddress((page + kLayout.KOffset(head, cell)).As<float>());
}

inline uint16_t* ValueOf(const KvPages& pages, int head, int64_t position) {
  const DevicePtr<std::byte> page =
      pages.pages[position / kPageTokens - pages.first_page];
  const auto cell = static_cast<int>(position % kPageTokens);
  return HostAddress((page + kLayout.VOffset(head, cell)).As<uint16_t>());
}

// The expected contents of a sequence: a number per position, from which its K
// and V follow.
struct Oracle {
  std::vector<int> numbers;  // [position - begin]
  int* next;                 // shared by forks

  float Key(int layer, int head, int number) const {
    return static_cast<float>((number * kLayers + layer) * 2 + head);
  }
};

// Returns true if one of the rows from `first_row` on reads the earlier
// position `at`.
inline bool Reads(const View& view, int layer, int head, int64_t at,
                  int64_t begin, int64_t first_row) {
  const auto in = [at](const std::vector<PositionRange>& ranges) {
    for (const PositionRange& range : ranges) {
      if (range.begin <= at && at < range.end) return true;
    }
    return false;
  };
  return at > first_row - view.recent || at < begin + view.sinks ||
         in(view.pinned) ||
         (!view.selected.empty() &&
          in(view.selected[static_cast<size_t>(layer * 2 + head)]));
}

inline void Check(const KvPages& pages, int layer, const Oracle& oracle,
                  const View& view) {
  ASSERT_EQ(pages.end - pages.begin,
            static_cast<int64_t>(oracle.numbers.size()));
  for (int64_t at = pages.begin; at < pages.end; ++at) {
    const int number = oracle.numbers[static_cast<size_t>(at - pages.begin)];
    for (int head = 0; head < 2; ++head) {
      if (!Reads(view, layer, head, at, pages.begin, pages.end)) continue;
      ASSERT_EQ(KeyOf(pages, head, at)[7], oracle.Key(layer, head, number))
          << "layer " << layer << " position " << at;
      ASSERT_EQ(ValueOf(pages, head, at)[0],
                static_cast<uint16_t>(number * 7 + layer * 2 + head));
    }
  }
}

inline void Write(const KvPages& pages, int layer, const Oracle& oracle,
                  int64_t row, int number) {
  const int64_t at = pages.end + row;
  for (int head = 0; head < 2; ++head) {
    for (int i = 0; i < 8; ++i) {
      KeyOf(pages, head, at)[i] = oracle.Key(layer, head, number);
      ValueOf(pages, head, at)[i] =
          static_cast<uint16_t>(number * 7 + layer * 2 + head);
    }
  }
}

// Computes layers [first, kLayers) of a step of `rows` rows: checks all that
// its view reads, and writes the rows, in the first layer only those from `row`
// on.
inline absl::Status Layers(KvStore& kv, const Oracle& oracle, int64_t rows,
                           int first = 0, int64_t row = 0,
                           const View& view = View::Full(),
                           KvStore::Cancelled cancelled = kGoOn) {
  for (int layer = first; layer < kLayers; ++layer) {
    ASSIGN_OR_RETURN(const KvPages pages, kv.BeginLayer(layer, cancelled));
    Check(pages, layer, oracle, view);
    for (int64_t i = layer == first ? row : 0; i < rows; ++i) {
      Write(pages, layer, oracle, i, *oracle.next + static_cast<int>(i));
    }
    for (int64_t i = 0; i < rows; ++i) {
      const float* const key = KeyOf(pages, 1, pages.end + i);
      EXPECT_EQ(*key, oracle.Key(layer, 1, *oracle.next + static_cast<int>(i)));
    }
    kv.EndLayer(layer);
  }
  return absl::OkStatus();
}

// Makes a whole step of which `kept` rows are committed. Returns the store's
// error if it fails, and leaves the store as it was.
inline absl::Status TryStep(KvStore& kv, Oracle& oracle, int64_t rows,
                            int64_t kept, const View& view = View::Full(),
                            KvStore::Cancelled cancelled = kGoOn) {
  absl::Status status = kv.BeginStep(rows, Phase::kVerify, view, cancelled);
  if (!status.ok()) return status;
  status = Layers(kv, oracle, rows, 0, 0, view, cancelled);
  if (status.ok()) status = kv.Commit(kept, cancelled);
  if (!status.ok()) {
    kv.Abandon();
    return status;
  }
  for (int64_t i = 0; i < kept; ++i) {
    oracle.numbers.push_back(*oracle.next + static_cast<int>(i));
  }
  *oracle.next += static_cast<int>(rows);
  return status;
}

inline void Step(KvStore& kv, Oracle& oracle, int64_t rows,
                 const View& view = View::Full()) {
  const absl::Status status = TryStep(kv, oracle, rows, rows, view);
  ASSERT_TRUE(status.ok()) << status;
}

inline void CutTo(KvStore& kv, Oracle& oracle, int64_t length) {
  kv.Truncate(length);
  oracle.numbers.resize(static_cast<size_t>(length));
}

}  // namespace tiercel::kv_store_test

#endif  // TIERCEL_OFFLOAD_KV_KV_STORE_FOR_TEST_H_
