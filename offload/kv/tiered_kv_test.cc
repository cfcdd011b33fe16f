// The store of a device that is too small: the pages that it moves, and the
// copies and waits that may fail.

#include "offload/kv/tiered_kv.h"

#include "offload/kv/kv_store_for_test.h"

namespace tiercel::kv_store_test {
namespace {

// A copy may fail at any moment: the step returns an error, and the sequence is
// as before.
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
      if (!made.copy->happened()) break;
    }
  }
}

// A fetch ahead that fails does not fail the next step, which fetches again.
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
    for (const KvTier::Buffer& buffer : made.tier->buffers) {
      while (!made.tier->engine->Done(buffer.filled)) std::this_thread::yield();
    }
    if (!made.copy->happened()) break;
    if (failures > 0) continue;
    ++lost;
    Step(*made.kv, oracle, 1);
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_EQ(lost, 2);
}

// Makes a prompt's step that stops in layer 1 and goes on there. Returns the
// store's error if it fails, and leaves the store as it was.
absl::Status TryInTwoParts(KvStore& kv, Oracle& oracle, int64_t rows,
                           int64_t state_bytes,
                           KvStore::Cancelled cancelled = kGoOn) {
  const auto run = [&]() -> absl::Status {
    if (absl::Status s =
            kv.BeginStep(rows, Phase::kPrefill, View::Full(), kGoOn);
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
    if (absl::Status s =
            kv.Suspend(1, rows / 2, InPlace(state.data()), state_bytes);
        !s.ok()) {
      return s;
    }
    std::memset(state.data(), 255, state.size());
    if (absl::Status s = kv.Resume(InPlace(state.data()), cancelled); !s.ok())
      return s;
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
      // The link is slow, so that copies are still under way when dropped.
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
      if (!made.copy->happened()) break;
    }
  }
}

// The state saved of one prompt does not mix with that of the next, which may
// be saved in the same memory.
TEST(TieredKvTest, PromptsOfManySizesAreInterrupted) {
  const Made made = Make(0, 0);
  int next = 1;
  Oracle oracle{{}, &next};
  for (int64_t bytes : {96, 10000, 1 << 21, 500, 1 << 23}) {
    ASSERT_TRUE(TryInTwoParts(*made.kv, oracle, 300, bytes).ok());
    CutTo(*made.kv, oracle, 0);
  }
}

// Checks the formulas of KV_FORMAT.md for a prompt that is stopped.
TEST(TieredKvTest, WhatIsParkedComesBackOnce) {
  const Made made = Make(/*resident=*/0, 0);
  int next = 1;
  Oracle oracle{{}, &next};
  Step(*made.kv, oracle, 200);
  // The prompt stops after 350 rows. They fill the open page and lie in three
  // more, which only a layer buffer has.
  ASSERT_TRUE(TryInTwoParts(*made.kv, oracle, 700, /*state_bytes=*/1000).ok());
  const KvMoves moves = made.kv->moves();
  EXPECT_EQ(moves.parked_pages, 3);
  EXPECT_EQ(moves.resumed_pages, moves.parked_pages);
  EXPECT_EQ(moves.parked_bytes, 1000);
  EXPECT_EQ(moves.resumed_bytes, 1000);
  const int64_t asked =
      (moves.swept_pages + moves.resumed_pages) * kLayout.PageBytes() + 1000;
  // The copy of the next layer's one page was dropped if it had not begun.
  EXPECT_LE(MovedUp(made), asked);
  EXPECT_GE(MovedUp(made), asked - kLayout.PageBytes());
}

// A step may be cancelled at any of its waits: the sequence is then as before.
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

// A step waits for a page that was truncated on its way down. If it is
// cancelled meanwhile it has not begun.
TEST(TieredKvTest, AStepThatWaitsForAPageMayBeCancelled) {
  const auto rate = static_cast<double>(kLayout.PageBytes()) * 20;
  const Made made =
      Make(/*resident=*/0, 0, std::numeric_limits<int64_t>::max(), rate);
  int next = 1;
  Oracle oracle{{}, &next};
  const View window = View::Window(0, 20);
  Step(*made.kv, oracle, 100);
  Step(*made.kv, oracle, 40, window);
  CutTo(*made.kv, oracle, 100);
  const auto stop = [] { return true; };
  EXPECT_EQ(ClassOf(made.kv->BeginStep(1, Phase::kDraft, window, stop)),
            ErrorClass::kCancelled);
  EXPECT_EQ(made.kv->length(), 100);
  Step(*made.kv, oracle, 1, window);
  Step(*made.kv, oracle, 1);
}

// A page counts from when the host tier has all of it until rows are added to
// it: a step that is abandoned changes nothing.
TEST(TieredKvTest, HostBytesAreOfWhatArrived) {
  for (const bool lost : {false, true}) {
    const Made made =
        Make(/*resident=*/0, 0,
             /*fail_at=*/lost ? 0 : std::numeric_limits<int64_t>::max());
    int next = 1;
    Oracle oracle{{}, &next};
    const auto begin_and_abandon = [&] {
      ASSERT_TRUE(
          made.kv->BeginStep(1, Phase::kVerify, View::Full(), kGoOn).ok());
      made.kv->Abandon();
    };
    Step(*made.kv, oracle, 100);
    begin_and_abandon();
    EXPECT_EQ(made.kv->HostBytes(), 0);
    Step(*made.kv, oracle, 40);  // the first page is full, and on its way
    CutTo(*made.kv, oracle, 100);
    begin_and_abandon();  // it waits for the page
    EXPECT_EQ(made.kv->HostBytes(), lost ? 0 : kLayers * kLayout.PageBytes());
    Step(*made.kv, oracle, 1);
    EXPECT_EQ(made.kv->HostBytes(), 0);
  }
}

// Pages that a step has fetched ahead are dropped if the prompt that needs them
// stops: they are fetched again.
TEST(TieredKvTest, APromptMayStopBeforeItsFirstLayer) {
  for (const int layer : {0, 1}) {
    const auto rate = static_cast<double>(kLayout.PageBytes()) * 300;
    const Made made =
        Make(/*resident=*/0, 0, std::numeric_limits<int64_t>::max(), rate);
    int next = 1;
    Oracle oracle{{}, &next};
    Step(*made.kv, oracle, 800);
    Step(*made.kv, oracle, 1);
    const int64_t rows = 70;
    ASSERT_TRUE(
        made.kv->BeginStep(rows, Phase::kPrefill, View::Full(), kGoOn).ok());
    for (int done = 0; done < layer; ++done) {
      const absl::StatusOr<KvPages> pages = made.kv->BeginLayer(done, kGoOn);
      ASSERT_TRUE(pages.ok());
      for (int64_t i = 0; i < rows; ++i) {
        Write(*pages, done, oracle, i, next + static_cast<int>(i));
      }
      made.kv->EndLayer(done);
    }
    std::vector<std::byte> state(96);
    ASSERT_TRUE(made.kv->Suspend(layer, 0, InPlace(state.data()), 96).ok());
    ASSERT_TRUE(made.kv->Resume(InPlace(state.data()), kGoOn).ok());
    ASSERT_TRUE(Layers(*made.kv, oracle, rows, layer, 0).ok());
    ASSERT_TRUE(made.kv->Commit(rows, kGoOn).ok());
  }
}

// After a page that got lost was sent again, fetches ahead are used as before.
TEST(TieredKvTest, AfterALostPageWhatIsAheadIsUsedAgain) {
  int lost = 0;
  for (int64_t fail_at = 0;; ++fail_at) {
    const Made made = Make(/*resident=*/2, 0, fail_at);
    int next = 1;
    Oracle oracle{{}, &next};
    int failures = 0;
    for (int64_t rows : {1000, 1, 23, 1, 1}) {
      while (!TryStep(*made.kv, oracle, rows, rows).ok()) {
        ASSERT_LT(++failures, 2);
      }
    }
    if (!made.copy->happened()) break;
    for (int step = 0; step < 2; ++step) Step(*made.kv, oracle, 1);
    const int64_t before = made.kv->moves().swept_pages;
    Step(*made.kv, oracle, 1);
    const int64_t staged = made.kv->length() / kPageTokens - 2;
    EXPECT_EQ(made.kv->moves().swept_pages - before, staged * kLayers)
        << "copy " << fail_at;
    lost += failures == 0;
  }
  EXPECT_GT(lost, kLayers);
}

TEST(TieredKvTest, NothingMovesTwice) {
  const Made made = Make(2, 0);
  int next = 1;
  Oracle oracle{{}, &next};
  Step(*made.kv, oracle, 1000);  // fills 7 pages, of which 2 stay
  EXPECT_EQ(made.kv->moves().closed_pages, 7 * kLayers);
  EXPECT_EQ(made.kv->moves().swept_pages, 0);
  Step(*made.kv, oracle, 1);
  EXPECT_EQ(made.kv->moves().swept_pages, 5 * (kLayers + 2));
  EXPECT_EQ(made.kv->moves().ahead_pages, 5 * 2);
  Step(*made.kv, oracle, 23);  // the eighth page is full
  EXPECT_EQ(made.kv->moves().closed_pages, 8 * kLayers);
  const LinkUse used =
      made.tier->engine->ledger()[static_cast<size_t>(Phase::kVerify)];
  const KvMoves moves = made.kv->moves();
  EXPECT_EQ(used.h2d_bytes,
            static_cast<uint64_t>(moves.swept_pages * kLayout.PageBytes()));
  EXPECT_EQ(used.d2h_bytes,
            static_cast<uint64_t>(moves.closed_pages * kLayout.PageBytes()));
}

// A page that was fetched ahead is written anew while nothing is staged: the
// next sweep reads what it has now.
TEST(TieredKvTest, APageFetchedAheadMayBeWrittenAnew) {
  const Made made = Make(/*resident=*/1, 0);
  int next = 1;
  Oracle oracle{{}, &next};
  Step(*made.kv, oracle, 630);
  Step(*made.kv, oracle, 20);  // fills the fifth page
  Step(*made.kv, oracle, 1);   // asks for that, while it is on the device, too
  const int64_t swept = made.kv->moves().swept_pages;
  CutTo(*made.kv, oracle, 540);
  const View window = View::Window(4, 10);
  for (int i = 0; i < 2; ++i) Step(*made.kv, oracle, 60, window);
  EXPECT_EQ(made.kv->moves().swept_pages, swept);
  for (int i = 0; i < 3; ++i) Step(*made.kv, oracle, 1);
}

// A draft over a window whose sinks are in a resident page and whose recent
// positions are in open ones moves nothing, and pages fetched for the next
// sweep wait for that.
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
  ASSERT_TRUE(made.kv->BeginStep(5, Phase::kDraft, window, kGoOn).ok());
  made.kv->Abandon();
  EXPECT_EQ(made.kv->moves().swept_pages, after_sweep);
  EXPECT_EQ(made.kv->moves().ahead_pages, 6 * 2);
  Step(*made.kv, oracle, 5);
  EXPECT_EQ(made.kv->moves().swept_pages, after_sweep + 6 * kLayers);
  EXPECT_EQ(made.kv->moves().ahead_pages, 6 * 2);
  EXPECT_EQ(MovedUp(made), made.kv->moves().swept_pages * kLayout.PageBytes());
}

// A window slides over many pages: those that become full go down, none comes
// up.
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

// Closed pages that steps in place have left on the device leave it for a
// sweep's rows.
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

// Checks the formula of KV_FORMAT.md for decode steps under a window that
// reaches into pages below.
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
    // The step reads page 0 and those from the window's first position on.
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

// A layer fetches the pages that at least one of its heads reads.
TEST(TieredKvTest, LayersFetchTheirOwnPages) {
  const Made made = Make(/*resident=*/0, 0);
  int next = 1;
  Oracle oracle{{}, &next};
  Step(*made.kv, oracle, 1000);
  View view = View::Window(0, 1);
  view.selected = {{},           {{130, 140}},           // layer 0: page 1
                   {{0, 8}},     {{0, 16}, {380, 390}},  // 0, 2, 3
                   {{640, 641}}, {}};                    // 5
  ASSERT_TRUE(made.kv->BeginStep(2, Phase::kDraft, view, kGoOn).ok());
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

}  // namespace
}  // namespace tiercel::kv_store_test
