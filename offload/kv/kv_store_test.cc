// Both stores against the same oracle: what a sequence should hold, by
// position.

#include "offload/kv/kv_store.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/base/error.h"
#include "offload/kv/host_kv.h"
#include "offload/kv/tiered_kv.h"
#include "offload/tier/device_arena.h"

namespace tiercel {
namespace {

constexpr KvLayout kLayout = {DType::kF32, DType::kF16, /*kv_heads=*/2,
                              /*head_dim=*/8};
constexpr int kLayers = 3;
constexpr int64_t kContextPages = 12;
constexpr auto kGoOn = [] { return false; };

// Fails the transfer number `fail_at` (from 0), counted over its life.
class FaultyLink final : public Link {
 public:
  FaultyLink(double rate, int64_t fail_at)
      : link_(rate, 0, nullptr), left_(fail_at) {}
  absl::StatusOr<Moved> Copy(const Transfer& transfer, Clock::Time since,
                             const std::atomic<bool>& drop) override {
    if (left_-- == 0) return DeviceError("copy_failed", "a fault of the test");
    return link_.Copy(transfer, since, drop);
  }
  void Forget(const HostRegion& region) override { link_.Forget(region); }
  bool fault_is_past() const { return left_ < 0; }

 private:
  SimulatedLink link_;
  std::atomic<int64_t> left_;
};

struct Made {
  std::unique_ptr<DeviceArena> arena;
  std::shared_ptr<KvTier> tier;  // null: everything in place
  const FaultyLink* link = nullptr;
  std::shared_ptr<PagePool> pool;
  std::unique_ptr<KvStore> kv;

  int64_t HostSlots() const {
    return tier != nullptr ? tier->pool.slots_in_use() : pool->slots_in_use();
  }
};

// resident < 0: a store in place.
Made Make(int64_t resident, int64_t begin,
          int64_t fail_at = std::numeric_limits<int64_t>::max(),
          double rate = 1e12) {
  Made made;
  if (resident < 0) {
    made.pool = std::make_shared<PagePool>(kLayout, kLayers, 4);
    made.kv = std::make_unique<HostKv>(made.pool, begin);
    return made;
  }
  TierShape shape;
  shape.layout = kLayout;
  shape.layers = kLayers;
  shape.context_pages = kContextPages;
  shape.resident_pages = resident;
  shape.staged_pages = kContextPages - resident;
  made.arena = *DeviceArena::Create(
      AlignedBytes(shape.StagingBytes() + shape.SlotBytes()));
  auto link = std::make_unique<FaultyLink>(rate, fail_at);
  made.link = link.get();
  made.tier = *KvTier::Create(shape, *made.arena, std::move(link));
  made.kv = std::make_unique<TieredKv>(made.tier, begin);
  return made;
}

int64_t MovedUp(const Made& made) {
  uint64_t bytes = 0;
  for (const LinkUse& use : made.tier->engine->ledger()) bytes += use.h2d_bytes;
  return static_cast<int64_t>(bytes);
}

float* KeyOf(const KvPages& pages, int head, int64_t position) {
  std::byte* page = pages.pages[position / kPageTokens - pages.first_page];
  return reinterpret_cast<float*>(
      page + kLayout.KOffset(head, static_cast<int>(position % kPageTokens)));
}

uint16_t* ValueOf(const KvPages& pages, int head, int64_t position) {
  std::byte* page = pages.pages[position / kPageTokens - pages.first_page];
  return reinterpret_cast<uint16_t*>(
      page + kLayout.VOffset(head, static_cast<int>(position % kPageTokens)));
}

// What a sequence holds: a number per position, written once.
struct Oracle {
  std::vector<int> numbers;  // [position - begin]
  int* next;                 // shared by forks

  float Key(int layer, int head, int number) const {
    return static_cast<float>((number * kLayers + layer) * 2 + head);
  }
};

// Whether one of the rows from `first_row` on reads position `at` before them.
bool Reads(const View& view, int layer, int head, int64_t at, int64_t begin,
           int64_t first_row) {
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

void Check(const KvPages& pages, int layer, const Oracle& oracle,
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

void Write(const KvPages& pages, int layer, const Oracle& oracle, int64_t row,
           int number) {
  const int64_t at = pages.end + row;
  for (int head = 0; head < 2; ++head) {
    for (int i = 0; i < 8; ++i) {
      KeyOf(pages, head, at)[i] = oracle.Key(layer, head, number);
      ValueOf(pages, head, at)[i] =
          static_cast<uint16_t>(number * 7 + layer * 2 + head);
    }
  }
}

// Layers [first, kLayers) of a step that reads the view and writes `rows`, from
// row `row` on in the first.
absl::Status Layers(KvStore& kv, const Oracle& oracle, int64_t rows,
                    int first = 0, int64_t row = 0,
                    const View& view = View::Full(),
                    KvStore::Cancelled cancelled = kGoOn) {
  for (int layer = first; layer < kLayers; ++layer) {
    const absl::StatusOr<KvPages> pages = kv.BeginLayer(layer, cancelled);
    if (!pages.ok()) return pages.status();
    Check(*pages, layer, oracle, view);
    for (int64_t i = layer == first ? row : 0; i < rows; ++i) {
      Write(*pages, layer, oracle, i, *oracle.next + static_cast<int>(i));
    }
    for (int64_t i = 0; i < rows; ++i) {
      const float* const key = KeyOf(*pages, 1, pages->end + i);
      EXPECT_EQ(*key, oracle.Key(layer, 1, *oracle.next + static_cast<int>(i)));
    }
    kv.EndLayer(layer);
  }
  return absl::OkStatus();
}

// A whole step of which `kept` rows are committed. Fails as the store fails,
// and leaves it as it was.
absl::Status TryStep(KvStore& kv, Oracle& oracle, int64_t rows, int64_t kept,
                     const View& view = View::Full(),
                     KvStore::Cancelled cancelled = kGoOn) {
  absl::Status status = kv.BeginStep(rows, Station::kVerify, view, cancelled);
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

void Step(KvStore& kv, Oracle& oracle, int64_t rows,
          const View& view = View::Full()) {
  const absl::Status status = TryStep(kv, oracle, rows, rows, view);
  ASSERT_TRUE(status.ok()) << status;
}

void CutTo(KvStore& kv, Oracle& oracle, int64_t length) {
  kv.Truncate(length);
  oracle.numbers.resize(static_cast<size_t>(length));
}

class KvStoreTest : public testing::TestWithParam<int64_t> {
 protected:
  int next_ = 1;
};
INSTANTIATE_TEST_SUITE_P(Stores, KvStoreTest,
                         testing::Values(-1, 0, 1, 4, kContextPages),
                         [](const auto& store) {
                           return store.param < 0
                                      ? std::string("InPlace")
                                      : absl::StrCat("Resident", store.param);
                         });

TEST_P(KvStoreTest, AppendsAcrossPages) {
  for (int64_t begin : {0, 5, 120007}) {
    const Made made = Make(GetParam(), begin);
    Oracle oracle{{}, &next_};
    for (int64_t rows : {1, 62, 64, 1, 1, 128, 700, 1, 63, 64, 64, 64, 2}) {
      Step(*made.kv, oracle, rows);
    }
    EXPECT_EQ(made.kv->length(), 1215);
    EXPECT_EQ(made.kv->SweepBytesPerLayer(), 1215 * 2 * 8 * (4 + 2));
  }
}

TEST_P(KvStoreTest, DecodesThroughManyPages) {
  const Made made = Make(GetParam(), 0);
  Oracle oracle{{}, &next_};
  Step(*made.kv, oracle, 300);
  for (int i = 0; i < 400; ++i) Step(*made.kv, oracle, 1);
}

TEST_P(KvStoreTest, WhatIsNotCommittedIsNothing) {
  const Made made = Make(GetParam(), 0);
  Oracle oracle{{}, &next_};
  Step(*made.kv, oracle, 250);
  for (int64_t rows : {1, 10, 64, 200, 900}) {
    ASSERT_TRUE(
        made.kv->BeginStep(rows, Station::kDraft, View::Full(), kGoOn).ok());
    ASSERT_TRUE(Layers(*made.kv, oracle, rows).ok());
    next_ += static_cast<int>(rows);
    made.kv->Abandon();
    EXPECT_EQ(made.kv->length(), 250);
    EXPECT_EQ(made.HostSlots(), 2);
  }
  Step(*made.kv, oracle, 1);
  Step(*made.kv, oracle, 1);
}

TEST_P(KvStoreTest, SomeRowsOfAStepAreKept) {
  const Made made = Make(GetParam(), 100);
  Oracle oracle{{}, &next_};
  Step(*made.kv, oracle, 120);
  for (int64_t kept : {0, 1, 7, 8, 9, 20, 64, 0, 40, 64, 64}) {
    ASSERT_TRUE(TryStep(*made.kv, oracle, 64, kept).ok());
  }
}

TEST_P(KvStoreTest, TruncateReturnsPages) {
  const Made made = Make(GetParam(), 0);
  Oracle oracle{{}, &next_};
  Step(*made.kv, oracle, 1000);
  EXPECT_EQ(made.HostSlots(), 8);
  CutTo(*made.kv, oracle, 129);
  EXPECT_EQ(made.HostSlots(), 2);
  Step(*made.kv, oracle, 1);
  CutTo(*made.kv, oracle, 128);
  EXPECT_EQ(made.HostSlots(), 1);
  Step(*made.kv, oracle, 50);
  CutTo(*made.kv, oracle, 0);
  EXPECT_EQ(made.HostSlots(), 0);
  Step(*made.kv, oracle, 500);
}

TEST_P(KvStoreTest, TruncateToNothingFromMidPageBegin) {
  const Made made = Make(GetParam(), 70);
  Oracle oracle{{}, &next_};
  Step(*made.kv, oracle, 10);
  CutTo(*made.kv, oracle, 0);
  EXPECT_EQ(made.HostSlots(), 0);
  Step(*made.kv, oracle, 200);
}

TEST_P(KvStoreTest, ForksGoTheirOwnWay) {
  // A fork's open page needs a place on the device as well.
  if (GetParam() == 0) GTEST_SKIP() << "no device page is left for a fork";
  Made made = Make(GetParam(), 3);
  Oracle oracle{{}, &next_};
  Step(*made.kv, oracle, 300);
  absl::StatusOr<std::unique_ptr<KvStore>> fork = made.kv->Fork();
  ASSERT_TRUE(fork.ok()) << fork.status();
  Oracle forked = oracle;
  for (int turn = 0; turn < 5; ++turn) {
    Step(**fork, forked, 1);
    Step(*made.kv, oracle, 2);
    Step(**fork, forked, 60);
  }
  made.kv.reset();  // and outlive their origin
  Step(**fork, forked, 100);
  Step(**fork, forked, 1);
}

TEST_P(KvStoreTest, AnInterruptedPromptGoesOn) {
  for (const bool more : {false, true}) {
    const Made made = Make(GetParam(), 0);
    Oracle oracle{{}, &next_};
    Step(*made.kv, oracle, 200);
    const int64_t rows = 700;
    std::vector<std::byte> state(96, std::byte{7});
    ASSERT_TRUE(
        made.kv->BeginStep(rows, Station::kPrefill, View::Full(), kGoOn).ok());
    const KvPages zero = *made.kv->BeginLayer(0, kGoOn);
    for (int64_t i = 0; i < rows; ++i) {
      Write(zero, 0, oracle, i, next_ + static_cast<int>(i));
    }
    made.kv->EndLayer(0);
    const KvPages one = *made.kv->BeginLayer(1, kGoOn);
    for (int64_t i = 0; i < 333; ++i) {
      Write(one, 1, oracle, i, next_ + static_cast<int>(i));
    }
    ASSERT_TRUE(made.kv->Suspend(1, 333, state.data(), 96).ok());
    EXPECT_EQ(made.kv->length(), 200);
    if (more) {  // and is dropped by whatever else is done
      next_ += 1000;
      Step(*made.kv, oracle, 1);
      Step(*made.kv, oracle, 100);
      continue;
    }
    if (GetParam() >= 0) state.assign(96, std::byte{0});
    ASSERT_TRUE(made.kv->Resume(state.data(), kGoOn).ok());
    EXPECT_EQ(state, std::vector<std::byte>(96, std::byte{7}));
    ASSERT_TRUE(Layers(*made.kv, oracle, rows, 1, 333).ok());
    ASSERT_TRUE(made.kv->Commit(rows, kGoOn).ok());
    for (int64_t i = 0; i < rows; ++i) oracle.numbers.push_back(next_++);
    Step(*made.kv, oracle, 1);
    Step(*made.kv, oracle, 64);
  }
}

// Views of all kinds over the first `length` positions from `begin` on.
View RandomView(std::mt19937& random, int64_t begin, int64_t length) {
  const auto below = [&random](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  View view = View::Window(below(2) * 20, 1 + below(below(2) == 0 ? 60 : 500));
  if (below(3) == 0) view.pinned = {{begin + 100, begin + 110}};
  if (below(2) == 0) return view;
  for (int i = 0; i < kLayers * 2; ++i) {
    const int64_t at = begin + below(length + 1);
    view.selected.push_back({{at, at + below(40)}});
  }
  return view;
}

// Any order of everything a session does.
TEST_P(KvStoreTest, RandomHistories) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&random](int64_t n) {
      return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
    };
    const Made made = Make(GetParam(), below(2) * below(300));
    Oracle oracle{{}, &next_};
    KvStore& kv = *made.kv;
    for (int turn = 0; turn < 60; ++turn) {
      const int64_t room = (kContextPages - 1) * kPageTokens - kv.length();
      switch (below(7)) {
        case 0:
          CutTo(kv, oracle, below(kv.length() + 1));
          break;
        case 1:
          if (room > 65) Step(kv, oracle, std::min(room, 65 + below(400)));
          break;
        case 2:  // several steps under one view, as a draft takes them
          if (const View view = RandomView(random, kv.begin(), kv.length());
              room > 64 + 65) {
            const int64_t before = kv.length();
            for (int64_t i = below(30); i > 0; --i) {
              const int64_t rows = 1 + below(2);
              ASSERT_TRUE(
                  TryStep(kv, oracle, rows, below(rows + 1), view).ok());
            }
            if (below(2) == 0) CutTo(kv, oracle, before);
            if (below(4) == 0) Step(kv, oracle, 65, view);
          }
          break;
        default: {
          if (room < 64) break;
          const int64_t rows = 1 + below(64);
          const View view = below(3) > 0
                                ? View::Full()
                                : RandomView(random, kv.begin(), kv.length());
          ASSERT_TRUE(TryStep(kv, oracle, rows, below(rows + 1), view).ok());
        }
      }
    }
  }
}

// A copy that fails at any moment is an error, and no more than that.
TEST(TieredKvTest, EveryCopyMayFail) {
  for (int64_t resident : {0, 2}) {
    for (int64_t fail_at = 0;; ++fail_at) {
      const Made made = Make(resident, 0, fail_at);
      int next = 1;
      Oracle oracle{{}, &next};
      int failures = 0;
      const auto step = [&](int64_t rows, const View& view = View::Full()) {
        while (true) {
          const absl::Status status =
              TryStep(*made.kv, oracle, rows, rows, view);
          if (status.ok()) return;
          ASSERT_EQ(CodeOf(status), "copy_failed");
          ASSERT_LT(++failures, 3);
        }
      };
      step(500);
      for (int i = 0; i < 6; ++i) step(40);
      step(5, View::Window(4, 300));
      step(1);
      for (int i = 0; i < 8; ++i) step(20, View::Window(0, 30));
      step(2);
      CutTo(*made.kv, oracle, 460);
      step(3);
      step(90);
      step(1);
      if (testing::Test::HasFatalFailure()) return;
      EXPECT_LE(failures, 1);
      if (!made.link->fault_is_past()) break;
    }
  }
}

// What was fetched for a step that may never come is no failure of the one that
// comes: it is fetched again.
TEST(TieredKvTest, WhatIsFetchedAheadMayGetLost) {
  int lost = 0;
  for (int64_t fail_at = 0;; ++fail_at) {
    const Made made = Make(/*resident=*/1, 0, fail_at);
    int next = 1;
    Oracle oracle{{}, &next};
    int failures = 0;
    for (int64_t rows : {700, 1}) {
      while (!TryStep(*made.kv, oracle, rows, rows).ok()) {
        ASSERT_LT(++failures, 2);
      }
    }
    for (const KvTier::Staging& buffer : made.tier->staging) {
      while (!made.tier->engine->Done(buffer.filled)) std::this_thread::yield();
    }
    if (!made.link->fault_is_past()) break;
    if (failures > 0) continue;
    ++lost;
    Step(*made.kv, oracle, 1);
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_EQ(lost, 2);
}

// A prompt that stops in layer 1 and goes on there. Fails as the store fails,
// and leaves it as it was.
absl::Status TryInTwoParts(KvStore& kv, Oracle& oracle, int64_t rows,
                           int64_t state_bytes,
                           KvStore::Cancelled cancelled = kGoOn) {
  const auto run = [&]() -> absl::Status {
    if (absl::Status s =
            kv.BeginStep(rows, Station::kPrefill, View::Full(), kGoOn);
        !s.ok()) {
      return s;
    }
    for (int layer : {0, 1}) {
      const absl::StatusOr<KvPages> pages = kv.BeginLayer(layer, kGoOn);
      if (!pages.ok()) return pages.status();
      for (int64_t i = 0; i < (layer == 0 ? rows : rows / 2); ++i) {
        Write(*pages, layer, oracle, i, *oracle.next + static_cast<int>(i));
      }
      if (layer == 0) kv.EndLayer(layer);
    }
    const auto mark = static_cast<std::byte>(*oracle.next % 251);
    std::vector<std::byte> state(static_cast<size_t>(state_bytes), mark);
    const std::vector<std::byte> saved = state;
    if (absl::Status s = kv.Suspend(1, rows / 2, state.data(), state_bytes);
        !s.ok()) {
      return s;
    }
    std::memset(state.data(), 255, state.size());
    if (absl::Status s = kv.Resume(state.data(), cancelled); !s.ok()) return s;
    EXPECT_EQ(std::memcmp(state.data(), saved.data(), state.size()), 0);
    if (absl::Status s = Layers(kv, oracle, rows, 1, rows / 2); !s.ok()) {
      return s;
    }
    return kv.Commit(rows, kGoOn);
  };
  const absl::Status status = run();
  if (!status.ok()) {
    kv.Abandon();
    return status;
  }
  for (int64_t i = 0; i < rows; ++i) oracle.numbers.push_back((*oracle.next)++);
  return status;
}

TEST(TieredKvTest, EveryCopyOfAnInterruptedPromptMayFail) {
  for (int64_t resident : {0, 2}) {
    for (int64_t fail_at = 0;; ++fail_at) {
      // Slow, so that what is dropped is on the way still.
      const Made made = Make(resident, 0, fail_at, /*rate=*/1e9);
      int next = 1;
      Oracle oracle{{}, &next};
      int failures = 0;
      const auto again = [&](auto attempt) {
        while (true) {
          const int64_t before = made.kv->length();
          const absl::Status status = attempt();
          if (status.ok()) return;
          ASSERT_EQ(CodeOf(status), "copy_failed");
          ASSERT_EQ(made.kv->length(), before);
          ASSERT_EQ(made.HostSlots(), (before + kPageTokens - 1) / kPageTokens);
          ASSERT_LT(++failures, 3);
        }
      };
      again([&] { return TryStep(*made.kv, oracle, 200, 200); });
      again([&] { return TryInTwoParts(*made.kv, oracle, 700, 3 << 20); });
      again([&] { return TryStep(*made.kv, oracle, 1, 1); });
      if (testing::Test::HasFatalFailure()) return;
      EXPECT_LE(failures, 1);
      if (!made.link->fault_is_past()) break;
    }
  }
}

// What was kept of one prompt says nothing of the next one's, which may be kept
// in the same place.
TEST(TieredKvTest, PromptsOfManySizesAreInterrupted) {
  const Made made = Make(0, 0);
  int next = 1;
  Oracle oracle{{}, &next};
  for (int64_t bytes : {96, 10000, 1 << 21, 500, 1 << 23}) {
    ASSERT_TRUE(TryInTwoParts(*made.kv, oracle, 300, bytes).ok());
    CutTo(*made.kv, oracle, 0);
  }
}

// The formulas of KV_FORMAT.md for a prompt that is stopped.
TEST(TieredKvTest, WhatIsParkedComesBackOnce) {
  const Made made = Make(/*resident=*/0, 0);
  int next = 1;
  Oracle oracle{{}, &next};
  Step(*made.kv, oracle, 200);
  // Stopped after 350 rows: they end in the page that was open and begin three
  // others, which a layer buffer alone has.
  ASSERT_TRUE(TryInTwoParts(*made.kv, oracle, 700, /*state_bytes=*/1000).ok());
  const KvMoves moves = made.kv->moves();
  EXPECT_EQ(moves.parked_pages, 3);
  EXPECT_EQ(moves.resumed_pages, moves.parked_pages);
  EXPECT_EQ(moves.parked_bytes, 1000);
  EXPECT_EQ(moves.resumed_bytes, 1000);
  const int64_t asked =
      (moves.swept_pages + moves.resumed_pages) * kLayout.PageBytes() + 1000;
  // The one page of the next layer may have been on its way, and was dropped.
  EXPECT_LE(MovedUp(made), asked);
  EXPECT_GE(MovedUp(made), asked - kLayout.PageBytes());
}

// Asked to stop at any of the moments where it would wait, a step never was.
TEST(TieredKvTest, EveryWaitMayBeCancelled) {
  for (int64_t resident : {0, 2}) {
    for (int64_t cancel_at = 1;; ++cancel_at) {
      const Made made = Make(resident, 0, std::numeric_limits<int64_t>::max(),
                             /*rate=*/2e8);
      int next = 1;
      Oracle oracle{{}, &next};
      int64_t asked = 0;
      const auto stop = [&] { return ++asked == cancel_at; };
      const auto step = [&](int64_t rows, bool in_two_parts = false) {
        for (int tries = 0; tries < 2; ++tries) {
          const int64_t before = made.kv->length();
          const absl::Status status =
              in_two_parts
                  ? TryInTwoParts(*made.kv, oracle, rows, 3 << 19, stop)
                  : TryStep(*made.kv, oracle, rows, rows, View::Full(), stop);
          if (status.ok()) return;
          ASSERT_EQ(ClassOf(status), ErrorClass::kCancelled);
          ASSERT_EQ(made.kv->length(), before);
          ASSERT_EQ(made.HostSlots(), (before + kPageTokens - 1) / kPageTokens);
        }
        FAIL() << "cancelled twice";
      };
      step(500);
      for (int i = 0; i < 3; ++i) step(40);
      CutTo(*made.kv, oracle, 460);
      step(60);
      CutTo(*made.kv, oracle, 300);
      step(3);
      step(90, true);
      step(1);
      if (testing::Test::HasFatalFailure()) return;
      if (asked < cancel_at) break;
    }
  }
}

// A page that got lost on its way down is known to be lost by all who share it.
TEST(TieredKvTest, AForkKnowsOfALostPage) {
  for (int64_t fail_at = 0;; ++fail_at) {
    Made made = Make(1, 0, fail_at);
    int next = 1;
    Oracle oracle{{}, &next};
    for (int tries = 0; !TryStep(*made.kv, oracle, 250, 250).ok(); ++tries) {
      ASSERT_LT(tries, 2);
    }
    for (int tries = 0; !TryStep(*made.kv, oracle, 16, 16).ok(); ++tries) {
      ASSERT_LT(tries, 2);
    }
    std::unique_ptr<KvStore> fork = *made.kv->Fork();
    Oracle forked = oracle;
    made.kv.reset();
    for (int64_t rows : {1, 1, 100}) {
      for (int tries = 0; !TryStep(*fork, forked, rows, rows).ok(); ++tries) {
        ASSERT_LT(tries, 2);
      }
    }
    if (!made.link->fault_is_past()) break;
  }
}

// A fork that goes another way from within a resident page has one of its own
// there: where no room is left, the other sequence's page leaves the device.
TEST(TieredKvTest, ResidentPagesMakeRoomForAFork) {
  const Made made = Make(/*resident=*/1, 0);
  int next = 1;
  Oracle oracle{{}, &next};
  Step(*made.kv, oracle, 1000);
  const std::unique_ptr<KvStore> fork = *made.kv->Fork();
  Oracle forked = oracle;
  CutTo(*fork, forked, 100);
  Step(*fork, forked, 60);  // into a second page: all slots but one are taken
  Step(*made.kv, oracle, 60);
  Step(*made.kv, oracle, 1);
  Step(*fork, forked, 64);
  Step(*fork, forked, 1);
}

// A page counts once the host tier has all of it, and until more of it is
// committed: a step that is abandoned changes nothing.
TEST(TieredKvTest, HostBytesAreOfWhatArrived) {
  for (const bool lost : {false, true}) {
    const Made made =
        Make(/*resident=*/0, 0,
             /*fail_at=*/lost ? 0 : std::numeric_limits<int64_t>::max());
    int next = 1;
    Oracle oracle{{}, &next};
    const auto begin_and_abandon = [&] {
      ASSERT_TRUE(
          made.kv->BeginStep(1, Station::kVerify, View::Full(), kGoOn).ok());
      made.kv->Abandon();
    };
    Step(*made.kv, oracle, 100);
    begin_and_abandon();
    EXPECT_EQ(made.kv->HostBytes(), 0);
    Step(*made.kv, oracle, 40);  // the first page is full, and on its way
    CutTo(*made.kv, oracle, 100);
    begin_and_abandon();  // after it was waited for
    EXPECT_EQ(made.kv->HostBytes(), lost ? 0 : kLayers * kLayout.PageBytes());
    Step(*made.kv, oracle, 1);
    EXPECT_EQ(made.kv->HostBytes(), 0);
  }
}

// What a fork has fetched ahead is its own, whatever becomes of its origin.
TEST(TieredKvTest, AnInterruptedPromptEndsApartFromForks) {
  Made made = Make(1, 0, std::numeric_limits<int64_t>::max(), /*rate=*/4e6);
  int next = 1;
  Oracle oracle{{}, &next};
  Step(*made.kv, oracle, 700);
  std::unique_ptr<KvStore> fork = *made.kv->Fork();
  Oracle forked = oracle;
  std::vector<std::byte> state(96);
  ASSERT_TRUE(
      made.kv->BeginStep(100, Station::kPrefill, View::Full(), kGoOn).ok());
  ASSERT_TRUE(made.kv->Suspend(0, 0, state.data(), 96).ok());
  Step(*fork, forked, 1);  // its next step's pages are on their way
  made.kv.reset();
  Step(*fork, forked, 1);
}

TEST(TieredKvTest, NothingMovesTwice) {
  const Made made = Make(2, 0);
  int next = 1;
  Oracle oracle{{}, &next};
  Step(*made.kv, oracle, 1000);  // 7 full pages, 2 of them stay
  EXPECT_EQ(made.kv->moves().closed_pages, 7 * kLayers);
  EXPECT_EQ(made.kv->moves().swept_pages, 0);
  Step(*made.kv, oracle, 1);
  EXPECT_EQ(made.kv->moves().swept_pages, 5 * (kLayers + 2));
  EXPECT_EQ(made.kv->moves().ahead_pages, 5 * 2);
  Step(*made.kv, oracle, 23);  // the eighth page is full
  EXPECT_EQ(made.kv->moves().closed_pages, 8 * kLayers);
  const LinkUse used =
      made.tier->engine->ledger()[static_cast<size_t>(Station::kVerify)];
  const KvMoves moves = made.kv->moves();
  EXPECT_EQ(used.h2d_bytes,
            static_cast<uint64_t>(moves.swept_pages * kLayout.PageBytes()));
  EXPECT_EQ(used.d2h_bytes,
            static_cast<uint64_t>(moves.closed_pages * kLayout.PageBytes()));
}

// Sinks in a resident page, recent positions in open ones: a draft over such a
// window moves nothing, and what was fetched for the next sweep waits for it.
TEST(TieredKvTest, AWindowOnTheDeviceMovesNothing) {
  const Made made = Make(/*resident=*/1, 0);
  int next = 1;
  Oracle oracle{{}, &next};
  const View window = View::Window(4, 100);
  Step(*made.kv, oracle, 1000);
  Step(*made.kv, oracle, 3);  // six pages are not on the device
  const int64_t after_sweep = 6 * (kLayers + 2);
  EXPECT_EQ(made.kv->moves().swept_pages, after_sweep);
  for (int i = 0; i < 20; ++i) Step(*made.kv, oracle, 1, window);
  CutTo(*made.kv, oracle, 1003);
  ASSERT_TRUE(TryStep(*made.kv, oracle, 5, 0, window).ok());
  ASSERT_TRUE(made.kv->BeginStep(5, Station::kDraft, window, kGoOn).ok());
  made.kv->Abandon();
  EXPECT_EQ(made.kv->moves().swept_pages, after_sweep);
  EXPECT_EQ(made.kv->moves().ahead_pages, 6 * 2);
  Step(*made.kv, oracle, 5);
  EXPECT_EQ(made.kv->moves().swept_pages, after_sweep + 6 * kLayers);
  EXPECT_EQ(made.kv->moves().ahead_pages, 6 * 2);
  EXPECT_EQ(MovedUp(made), made.kv->moves().swept_pages * kLayout.PageBytes());
}

// Through many pages: those that are full go down, none comes up.
TEST(TieredKvTest, AWindowSlidesWithoutFetching) {
  const Made made = Make(/*resident=*/1, 0);
  int next = 1;
  Oracle oracle{{}, &next};
  Step(*made.kv, oracle, 370);
  for (int i = 0; i < 300; ++i) Step(*made.kv, oracle, 3, View::Window(4, 100));
  EXPECT_EQ(made.kv->moves().swept_pages, 0);
  EXPECT_EQ(made.kv->moves().closed_pages, 9 * kLayers);
  EXPECT_EQ(MovedUp(made), 0);
  Step(*made.kv, oracle, 1);
}

// Closed pages that steps in place have left make room for a sweep's rows.
TEST(TieredKvTest, ASweepFollowsAWindowAnywhere) {
  for (int64_t between = 180; between < 330; between += 10) {
    const Made made = Make(/*resident=*/0, 0);
    int next = 1;
    Oracle oracle{{}, &next};
    Step(*made.kv, oracle, 300);
    Step(*made.kv, oracle, 1);
    for (int64_t i = 0; i < between; i += 5) {
      Step(*made.kv, oracle, 5, View::Window(0, 20));
    }
    for (int i = 0; i < 3; ++i) Step(*made.kv, oracle, 64);
  }
}

// The formula of KV_FORMAT.md for decode steps under a window that reaches
// into pages below.
TEST(TieredKvTest, AWindowFetchesThePagesThatItReads) {
  const Made made = Make(/*resident=*/0, 0);
  int next = 1;
  Oracle oracle{{}, &next};
  constexpr int64_t kRecent = 300;
  Step(*made.kv, oracle, 1000);
  int64_t end = 1000;
  int64_t full = end / kPageTokens;  // pages that left the device
  int64_t expected = 0;
  int64_t ahead = 0;
  for (int i = 0; i < 300; ++i, ++end) {
    // Page 0 and those from the one with the window's first position on.
    const int64_t from = (end - kRecent + 1) / kPageTokens;
    const int64_t full_next = end / kPageTokens;
    expected += (i == 0 ? kLayers : kLayers - 2) * (1 + full - from);
    ahead = 2 * (1 + full_next - from);
    expected += ahead;
    full = full_next;
    Step(*made.kv, oracle, 1, View::Window(4, kRecent));
    ASSERT_EQ(made.kv->moves().swept_pages, expected) << i;
    ASSERT_EQ(made.kv->moves().ahead_pages, ahead);
  }
  EXPECT_EQ(MovedUp(made), expected * kLayout.PageBytes());
}

// Each layer gets its own pages, each page if one of the heads reads it.
TEST(TieredKvTest, LayersFetchTheirOwnPages) {
  const Made made = Make(/*resident=*/0, 0);
  int next = 1;
  Oracle oracle{{}, &next};
  Step(*made.kv, oracle, 1000);
  View view = View::Window(0, 1);
  view.selected = {{},           {{130, 140}},           // layer 0: page 1
                   {{0, 8}},     {{0, 16}, {380, 390}},  // 0, 2, 3
                   {{640, 641}}, {}};                    // 5
  ASSERT_TRUE(made.kv->BeginStep(2, Station::kDraft, view, kGoOn).ok());
  const std::vector<std::vector<int64_t>> reads = {{1}, {0, 2, 3}, {5}};
  for (int layer = 0; layer < kLayers; ++layer) {
    const KvPages pages = *made.kv->BeginLayer(layer, kGoOn);
    ASSERT_EQ(pages.num_pages, 8);
    const auto& read = reads[static_cast<size_t>(layer)];
    for (int64_t page = 0; page < 7; ++page) {
      const bool there =
          std::find(read.begin(), read.end(), page) != read.end();
      EXPECT_EQ(pages.pages[page] != nullptr, there) << layer << " " << page;
    }
    EXPECT_NE(pages.pages[7], nullptr);
    Check(pages, layer, oracle, view);
    EXPECT_EQ(pages.view[1].fixed.size(),
              view.selected[static_cast<size_t>(layer * 2 + 1)].size());
    made.kv->EndLayer(layer);
  }
  made.kv->Abandon();
  EXPECT_EQ(made.kv->moves().swept_pages, 1 + 3 + 1 + (1 + 3));
}

TEST_P(KvStoreTest, RefusesAViewOfAnotherModel) {
  const Made made = Make(GetParam(), 0);
  Oracle oracle{{}, &next_};
  Step(*made.kv, oracle, 300);
  View view = View::Window(4, 10);
  view.selected.resize(5);
  EXPECT_EQ(CodeOf(made.kv->BeginStep(1, Station::kDraft, view, kGoOn)),
            "invalid_view");
  EXPECT_EQ(
      CodeOf(made.kv->BeginStep(1, Station::kDraft, View::Window(4, 0), kGoOn)),
      "invalid_view");
  Step(*made.kv, oracle, 1);
}

TEST(HostKvTest, RefusedMemoryLeavesTheSequenceAsItWas) {
  constexpr KvLayout kHuge = {DType::kF32, DType::kF32, /*kv_heads=*/1 << 10,
                              /*head_dim=*/1 << 16};
  // A segment of 2^47 bytes is more address space than a process has.
  auto pool = std::make_shared<PagePool>(kHuge, 1, int64_t{1} << 11);
  HostKv kv(pool, 0);
  const absl::Status status =
      kv.BeginStep(1, Station::kVerify, View::Full(), kGoOn);
  EXPECT_EQ(CodeOf(status), "out_of_memory") << status;
  EXPECT_EQ(kv.length(), 0);
  EXPECT_EQ(pool->slots_in_use(), 0);
}

}  // namespace
}  // namespace tiercel
