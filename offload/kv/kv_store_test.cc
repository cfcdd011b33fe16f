// Checks both stores against the same oracle.

#include "offload/kv/kv_store_for_test.h"

namespace tiercel::kv_store_test {
namespace {

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
        made.kv->BeginStep(rows, Phase::kDraft, View::Full(), kGoOn).ok());
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
  made.kv.reset();  // forks outlive their origin
  Step(**fork, forked, 100);
  Step(**fork, forked, 1);
}

// A step whose rows end below the last layer, and which is abandoned, takes the
// layers above from no existing page.
TEST_P(KvStoreTest, AnAbandonedStepLeavesAllLayers) {
  const Made made = Make(GetParam(), 0);
  Oracle oracle{{}, &next_};
  View deep;
  deep.pinned = {{0, 400}};
  deep.recent = 1;
  deep.full_layers = 1;
  deep.shallow = true;
  View shallow = deep;
  shallow.pinned.clear();
  Step(*made.kv, oracle, 300, deep);
  const int64_t held = made.kv->HostBytes();
  for (const int64_t rows : {10, 100}) {
    ASSERT_TRUE(made.kv->BeginStep(rows, Phase::kPrefill, shallow, kGoOn).ok());
    made.kv->Abandon();
    EXPECT_EQ(made.kv->HostBytes(), held);
    const std::unique_ptr<KvStore> fork = *made.kv->Fork();
    Oracle forked = oracle;
    Step(*fork, forked, 10, deep);
    CutTo(*fork, forked, 200);
    Step(*fork, forked, 10, deep);
  }
}

TEST_P(KvStoreTest, AnInterruptedPromptGoesOn) {
  for (const bool more : {false, true}) {
    const Made made = Make(GetParam(), 0);
    Oracle oracle{{}, &next_};
    Step(*made.kv, oracle, 200);
    const int64_t rows = 700;
    std::vector<std::byte> state(96, std::byte{7});
    ASSERT_TRUE(
        made.kv->BeginStep(rows, Phase::kPrefill, View::Full(), kGoOn).ok());
    const KvPages zero = *made.kv->BeginLayer(0, kGoOn);
    for (int64_t i = 0; i < rows; ++i) {
      Write(zero, 0, oracle, i, next_ + static_cast<int>(i));
    }
    made.kv->EndLayer(0);
    const KvPages one = *made.kv->BeginLayer(1, kGoOn);
    for (int64_t i = 0; i < 333; ++i) {
      Write(one, 1, oracle, i, next_ + static_cast<int>(i));
    }
    ASSERT_TRUE(made.kv->Suspend(1, 333, InPlace(state.data()), 96).ok());
    EXPECT_EQ(made.kv->length(), 200);
    if (more) {  // another step drops the one that was stopped
      next_ += 1000;
      Step(*made.kv, oracle, 1);
      Step(*made.kv, oracle, 100);
      continue;
    }
    if (GetParam() >= 0) state.assign(96, std::byte{0});
    ASSERT_TRUE(made.kv->Resume(InPlace(state.data()), kGoOn).ok());
    EXPECT_EQ(state, std::vector<std::byte>(96, std::byte{7}));
    ASSERT_TRUE(Layers(*made.kv, oracle, rows, 1, 333).ok());
    ASSERT_TRUE(made.kv->Commit(rows, kGoOn).ok());
    for (int64_t i = 0; i < rows; ++i) oracle.numbers.push_back(next_++);
    Step(*made.kv, oracle, 1);
    Step(*made.kv, oracle, 64);
  }
}

// Returns a view of any kind over the first `length` positions from `begin` on.
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

// Everything that a session does, in any order.
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

TEST_P(KvStoreTest, RefusesAViewOfAnotherModel) {
  const Made made = Make(GetParam(), 0);
  Oracle oracle{{}, &next_};
  Step(*made.kv, oracle, 300);
  View view = View::Window(4, 10);
  view.selected.resize(5);
  EXPECT_EQ(CodeOf(made.kv->BeginStep(1, Phase::kDraft, view, kGoOn)),
            "invalid_view");
  EXPECT_EQ(
      CodeOf(made.kv->BeginStep(1, Phase::kDraft, View::Window(4, 0), kGoOn)),
      "invalid_view");
  Step(*made.kv, oracle, 1);
}

TEST(HostKvTest, RefusedMemoryLeavesTheSequenceAsItWas) {
  constexpr KvLayout kHuge = {DType::kF32, DType::kF32, /*kv_heads=*/1 << 10,
                              /*head_dim=*/1 << 16};
  // A segment of 2^47 bytes is more address space than a process has.
  auto pool = std::make_shared<PagePool>(kHuge, 1, int64_t{1} << 11);
  InPlaceKv kv(pool, 0);
  const absl::Status status =
      kv.BeginStep(1, Phase::kVerify, View::Full(), kGoOn);
  EXPECT_EQ(CodeOf(status), "out_of_memory") << status;
  EXPECT_EQ(kv.length(), 0);
  EXPECT_EQ(pool->slots_in_use(), 0);
}

}  // namespace
}  // namespace tiercel::kv_store_test
