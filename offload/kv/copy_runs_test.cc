// Runs that are copied out of a sequence: the bytes that were asked for arrive
// in their place and nowhere else, wherever they lived.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/device/sim/bounded_memory.h"
#include "kernels/kv/testing.h"
#include "kernels/system/faults.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"
#include "offload/kv/in_place_kv.h"
#include "offload/kv/kv_store.h"
#include "offload/kv/kv_tier_for_test.h"
#include "offload/kv/tiered_kv.h"

namespace tiercel::copy_runs_test {
namespace {

constexpr int kLayers = 3;
constexpr int kHeads = 2;
constexpr int64_t kContextPages = 10;
constexpr auto kGoOn = [] { return false; };

Stream& Host() {
  static Stream* const stream = Stream::Create({.threads = 1})->release();
  return *stream;
}

struct Made {
  std::unique_ptr<BoundedMemory> memory;
  std::shared_ptr<KvTier> tier;  // null: the store is an InPlaceKv
  std::unique_ptr<KvStore> kv;
};

// Makes an InPlaceKv if resident < 0, else a TieredKv.
Made Make(const KvLayout& layout, int64_t resident, int64_t begin,
          double rate = 1e12) {
  Made made;
  if (resident < 0) {
    made.kv = std::make_unique<InPlaceKv>(
        std::make_shared<PagePool>(layout, kLayers, 4), begin);
    return made;
  }
  TierForTest on_device(layout, kLayers, kContextPages, resident,
                        std::make_unique<SimulatedLink>(rate, /*latency=*/0));
  made.memory = std::move(on_device.memory);
  made.tier = std::move(on_device.tier);
  made.kv = std::make_unique<TieredKv>(made.tier, begin);
  return made;
}

// The bytes of one row, unlike those of any other row in this or another
// `text`.
std::vector<std::byte> RowOf(int64_t bytes, int layer, int head, bool is_v,
                             int64_t position, uint32_t text) {
  std::seed_seq seed{static_cast<uint32_t>(layer * kHeads + head),
                     static_cast<uint32_t>(is_v),
                     static_cast<uint32_t>(position), text};
  std::minstd_rand random(seed);
  std::vector<std::byte> row(static_cast<size_t>(bytes));
  for (std::byte& b : row) b = static_cast<std::byte>(random() >> 8);
  return row;
}

absl::Status TryStep(KvStore& kv, int64_t rows, uint32_t text) {
  const KvLayout& layout = kv.layout();
  absl::Status status =
      kv.BeginStep(rows, Phase::kPrefill, View::Full(), kGoOn);
  for (int layer = 0; status.ok() && layer < kLayers; ++layer) {
    const absl::StatusOr<KvPages> pages = kv.BeginLayer(layer, kGoOn);
    status = pages.status();
    if (!status.ok()) break;
    for (int64_t t = pages->end; t < pages->end + rows; ++t) {
      std::byte* const page =
          HostAddress(pages->pages[t / kPageTokens - pages->first_page]);
      const auto slot = static_cast<int>(t % kPageTokens);
      for (int head = 0; head < kHeads; ++head) {
        const auto k = RowOf(layout.KRowBytes(), layer, head, false, t, text);
        const auto v = RowOf(layout.VRowBytes(), layer, head, true, t, text);
        std::memcpy(page + layout.KOffset(head, slot), k.data(), k.size());
        std::memcpy(page + layout.VOffset(head, slot), v.data(), v.size());
      }
    }
    kv.EndLayer(layer);
  }
  if (status.ok()) status = kv.Commit(rows, kGoOn);
  if (!status.ok()) kv.Abandon();
  return status;
}

void Step(KvStore& kv, int64_t rows, uint32_t text = 0) {
  const absl::Status status = TryStep(kv, rows, text);
  ASSERT_TRUE(status.ok()) << status;
}

// Random runs, the memory that they go to, and the bytes expected there when
// all have arrived: gaps between the runs stay as they are.
class Wanted {
 public:
  Wanted(const KvStore& kv, uint32_t text, unsigned seed) : random_(seed) {
    const KvLayout& layout = kv.layout();
    std::vector<size_t> k_at;
    std::vector<size_t> v_at;
    for (int i = 0; i < 60; ++i) {
      KvRun run;
      run.layer = static_cast<int>(Below(kLayers));
      run.head = static_cast<int>(Below(kHeads));
      run.position = kv.begin() + Below(kv.length());
      const int64_t there =
          std::min(kv.end(), (run.position / kPageTokens + 1) * kPageTokens);
      run.rows = 1 + Below(std::min<int64_t>(40, there - run.position));
      k_at.push_back(Place(run, false, layout.KRowBytes(), text));
      v_at.push_back(Place(run, true, layout.VRowBytes(), text));
      runs.push_back(run);
    }
    Gap();
    memory.assign(expected.size(), std::byte{0xff});
    for (size_t i = 0; i < runs.size(); ++i) {
      runs[i].k = InPlace(memory.data() + k_at[i]);
      runs[i].v = InPlace(memory.data() + v_at[i]);
    }
  }

  bool HasArrived() const { return memory == expected; }

  std::vector<KvRun> runs;
  std::vector<std::byte> memory;
  std::vector<std::byte> expected;

 private:
  int64_t Below(int64_t n) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(n));
  }
  void Gap() {  // a gap or none: without one, runs may be copied as one
    expected.insert(expected.end(), static_cast<size_t>(Below(2) * Below(20)),
                    std::byte{0xff});
  }
  size_t Place(const KvRun& run, bool is_v, int64_t row_bytes, uint32_t text) {
    Gap();
    const size_t at = expected.size();
    for (int64_t t = run.position; t < run.position + run.rows; ++t) {
      const auto row = RowOf(row_bytes, run.layer, run.head, is_v, t, text);
      expected.insert(expected.end(), row.begin(), row.end());
    }
    return at;
  }

  std::mt19937 random_;
};

std::vector<KvLayout> Layouts() {
  std::vector<KvLayout> layouts;
  for (const DType k : KvTypes(32)) {
    for (const DType v : KvTypes(32)) {
      layouts.push_back({k, v, kHeads, 32});
    }
  }
  return layouts;
}

constexpr KvLayout kLayout = {DType::kF16, DType::kQ8_0, kHeads, 32};

class CopyRunsTest : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Stores, CopyRunsTest,
                         testing::Values(-1, 0, 1, 4, kContextPages),
                         [](const auto& store) {
                           return store.param < 0
                                      ? std::string("InPlace")
                                      : absl::StrCat("Resident", store.param);
                         });

// After a prompt its last page is on the device, beside those that stay there;
// after a step a page that has just become full is, too. All others are below.
TEST_P(CopyRunsTest, FromWhereverTheyLive) {
  unsigned seed = 0;
  for (const KvLayout& layout : Layouts()) {
    for (const int64_t begin : InShort({0, 70, 120007}, {70})) {
      const Made made = Make(layout, GetParam(), begin);
      KvStore& kv = *made.kv;
      Step(kv, 700);
      const auto check = [&](int64_t open) {
        Wanted wanted(kv, 0, seed++);
        int64_t below = 0;
        for (const KvRun& run : wanted.runs) {
          const int64_t page = run.position / kPageTokens - begin / kPageTokens;
          if (page >= GetParam() && page < open) {
            below += run.rows * (layout.KRowBytes() + layout.VRowBytes());
          }
        }
        if (made.tier == nullptr) below = 0;
        const int64_t before = kv.moves().gathered_bytes;
        const uint64_t copies =
            kv.CopyRuns(Host(), Phase::kRefresh, wanted.runs);
        ASSERT_TRUE(kv.AwaitCopies(copies, kGoOn).ok());
        ASSERT_TRUE(wanted.HasArrived());
        ASSERT_EQ(kv.moves().gathered_bytes - before, below);
      };
      const int64_t open = (kv.end() - 1) / kPageTokens - begin / kPageTokens;
      check(open);
      while (kv.end() % kPageTokens != 1) Step(kv, 1);
      check(open);  // the full page is still on the device
      Step(kv, kPageTokens - 2);
      check(open + 1);
      kv.Truncate(500);  // to the middle of a page that is below
      check(std::numeric_limits<int64_t>::max());
      if (HasFatalFailure()) return;
      if (made.tier == nullptr) continue;
      EXPECT_EQ(
          made.tier->engine->ledger()[static_cast<size_t>(Phase::kRefresh)]
              .h2d_bytes,
          static_cast<uint64_t>(kv.moves().gathered_bytes));
    }
  }
}

// Runs arrive as they were when asked for, even if the sequence changes before.
TEST_P(CopyRunsTest, WhatFollowsDoesNotTouchThem) {
  const Made made = Make(kLayout, GetParam(), 3);
  KvStore& kv = *made.kv;
  Step(kv, 700);
  std::optional<Faults> faults;
  if (made.tier != nullptr) {
    // No copy begins before the next prompt's first pages are queued after it.
    const auto asked = [&engine = *made.tier->engine] {
      return engine.ledger()[static_cast<size_t>(Phase::kPrefill)].d2h_bytes;
    };
    faults.emplace(Callee::kLink, [asked, before = asked()](const Operation&) {
      while (asked() == before) std::this_thread::yield();
      return 0;
    });
  }
  std::unique_ptr<KvStore> fork = *kv.Fork();
  Wanted first(kv, 0, 1);
  Wanted second(kv, 0, 2);
  const uint64_t one = kv.CopyRuns(Host(), Phase::kRefresh, first.runs);
  const uint64_t two = fork->CopyRuns(Host(), Phase::kRefresh, second.runs);
  fork.reset();
  kv.Truncate(0);
  Step(kv, 600, /*text=*/1);
  Wanted third(kv, 1, 3);
  const uint64_t three = kv.CopyRuns(Host(), Phase::kRefresh, third.runs);
  EXPECT_TRUE(kv.AwaitCopies(three, kGoOn).ok());
  EXPECT_TRUE(kv.AwaitCopies(one, kGoOn).ok());
  EXPECT_TRUE(kv.AwaitCopies(two, kGoOn).ok());
  EXPECT_TRUE(first.HasArrived());
  EXPECT_TRUE(second.HasArrived());
  EXPECT_TRUE(third.HasArrived());
  EXPECT_TRUE(
      kv.AwaitCopies(kv.CopyRuns(Host(), Phase::kRefresh, {}), kGoOn).ok());
}

// AwaitCopies returns the error of a copy on the device, once.
TEST_P(CopyRunsTest, WhatFailsOnTheDeviceIsToldToWhoWaits) {
  const Made made = Make(kLayout, GetParam(), 0);
  KvStore& kv = *made.kv;
  Step(kv, 700);
  const Wanted wanted(kv, 0, 1);
  std::vector<KvRun> runs = wanted.runs;
  KvRun impossible = runs.front();
  impossible.position = kv.end() - 1;  // in every store it is on the device
  impossible.rows = -1;
  runs.push_back(impossible);
  EXPECT_EQ(
      CodeOf(kv.AwaitCopies(kv.CopyRuns(Host(), Phase::kRefresh, runs), kGoOn)),
      "invalid_sizes");
  EXPECT_TRUE(
      kv.AwaitCopies(kv.CopyRuns(Host(), Phase::kRefresh, wanted.runs), kGoOn)
          .ok());
  EXPECT_TRUE(wanted.HasArrived());
}

TEST(CopyRunsOfATierTest, EveryCopyMayFail) {
  std::atomic<int64_t> left{std::numeric_limits<int64_t>::max()};
  const Faults faults(Callee::kLink,
                      [&](const Operation&) { return left-- == 0; });
  const Made made = Make(kLayout, 1, 0);
  KvStore& kv = *made.kv;
  Step(kv, 700);
  int64_t n = 0;
  for (;; ++n) {
    const int64_t length = kv.length();
    Wanted wanted(kv, 0, static_cast<unsigned>(n));
    left = n;
    const uint64_t copies = kv.CopyRuns(Host(), Phase::kRefresh, wanted.runs);
    const absl::Status status = kv.AwaitCopies(copies, kGoOn);
    const bool failed = left < 0;
    left = std::numeric_limits<int64_t>::max();
    EXPECT_EQ(kv.length(), length);
    if (!failed) {
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_TRUE(wanted.HasArrived());
      break;
    }
    EXPECT_EQ(CodeOf(status), "copy_failed") << status;
    EXPECT_EQ(ClassOf(status), ErrorClass::kDevice);
    // The error is returned once, and the sequence is as before.
    EXPECT_TRUE(kv.AwaitCopies(copies, kGoOn).ok());
    const uint64_t again = kv.CopyRuns(Host(), Phase::kRefresh, wanted.runs);
    ASSERT_TRUE(kv.AwaitCopies(again, kGoOn).ok());
    ASSERT_TRUE(wanted.HasArrived());
    if (n % 8 == 0) Step(kv, 1);
  }
  EXPECT_GT(n, 40);
}

// Runs are copied before pages that are fetched ahead, which are needed later.
TEST(CopyRunsOfATierTest, TheyGoBeforeWhatIsFetchedAhead) {
  std::atomic<bool> shut{false};
  std::vector<int64_t> copied;  // the bytes of each copy
  const Faults faults(Callee::kLink, [&](const Operation& copy) {
    while (shut) std::this_thread::yield();
    copied.push_back(copy.bytes);
    return 0;
  });
  // Pages so large that each is a transfer of its own when fetched ahead.
  constexpr KvLayout kWide = {DType::kF32, DType::kF32, kHeads, 1024};
  const Made made = Make(kWide, 0, 0);
  KvStore& kv = *made.kv;
  Step(kv, 300);
  ASSERT_TRUE(kv.BeginStep(1, Phase::kVerify, View::Full(), kGoOn).ok());
  for (int layer = 0; layer < kLayers; ++layer) {
    ASSERT_TRUE(kv.BeginLayer(layer, kGoOn).ok());
    if (layer == kLayers - 2) {
      // The sweep has all its pages; those asked for from now on are ahead.
      const auto last = made.tier->BufferOf(layer + 1).filled;
      ASSERT_TRUE(made.tier->engine->Wait(last).ok());
      copied.clear();
      shut = true;
    }
    kv.EndLayer(layer);
  }
  ASSERT_TRUE(kv.Commit(1, kGoOn).ok());
  const Wanted wanted(kv, 0, 1);
  const uint64_t copies = kv.CopyRuns(Host(), Phase::kRefresh, wanted.runs);
  shut = false;
  EXPECT_TRUE(kv.AwaitCopies(copies, kGoOn).ok());
  EXPECT_TRUE(wanted.HasArrived());
  for (int layer = 0; layer < 2; ++layer) {
    EXPECT_TRUE(
        made.tier->engine->Wait(made.tier->BufferOf(layer).filled).ok());
  }
  // Two pages in each of two layers; the copy of one may have begun before.
  const int64_t page = kWide.PageBytes();
  EXPECT_EQ(std::count(copied.begin(), copied.end(), page), 4);
  ASSERT_GT(copied.size(), 10);
  for (size_t i = 1; i < copied.size(); ++i) {
    EXPECT_TRUE(copied[i] != page || i >= copied.size() - 4) << i;
  }
  EXPECT_NE(copied[1], page);
}

TEST(CopyRunsOfATierTest, CancelledTheyGoOn) {
  const Made made = Make(kLayout, 0, 0, /*rate=*/1e7);
  KvStore& kv = *made.kv;
  Step(kv, 700);
  Wanted wanted(kv, 0, 1);
  const uint64_t copies = kv.CopyRuns(Host(), Phase::kRefresh, wanted.runs);
  int asked = 0;
  const absl::Status status =
      kv.AwaitCopies(copies, [&] { return ++asked == 1; });
  EXPECT_EQ(ClassOf(status), ErrorClass::kCancelled);
  EXPECT_TRUE(kv.AwaitCopies(copies, kGoOn).ok());
  EXPECT_TRUE(wanted.HasArrived());
}

}  // namespace
}  // namespace tiercel::copy_runs_test
