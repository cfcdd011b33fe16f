// Sequences that share a tier: the one whose turn it is can use the whole tier
// as if it were alone, whatever the others do.

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "offload/kv/kv_store_for_test.h"
#include "offload/kv/step_spy_for_test.h"
#include "offload/kv/tiered_kv.h"
#include "tests/trials.h"

namespace tiercel::kv_store_test {
namespace {

// All sequences that share a page learn that it got lost on its way down.
TEST(ForksTest, AForkKnowsOfALostPage) {
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
    if (!made.copy->happened()) break;
  }
}

// A tier for which no test waits.
TierForTest OnFastLink(int64_t resident_pages, int64_t newest_pages,
                       const ForkPages& forks = {}) {
  return TierForTest(
      kLayout, kLayers, kContextPages, resident_pages,
      std::make_unique<SimulatedLink>(/*rate=*/1e12, /*latency=*/0),
      newest_pages, forks);
}

// A sequence and its oracle.
struct Forked {
  std::unique_ptr<KvStore> kv;
  Oracle oracle;
};

// Makes a step of `rows` rows of all; each row has a number of its own. Those
// for which there is no room beside the others step later. Returns the number
// of sequences that stepped at first.
int StepTogether(std::vector<Forked>& all, int64_t rows,
                 const std::vector<View>& views) {
  std::vector<size_t> waiting(all.size());
  std::iota(waiting.begin(), waiting.end(), size_t{0});
  int at_first = 0;
  while (!waiting.empty()) {
    std::vector<size_t> begun;
    std::vector<size_t> later;
    const auto view_of = [&](size_t i) { return views[i % views.size()]; };
    for (const size_t i : waiting) {
      const absl::Status status =
          all[i].kv->BeginStep(rows, Phase::kVerify, view_of(i), kGoOn);
      EXPECT_TRUE(status.ok() || CodeOf(status) == "out_of_memory") << status;
      (status.ok() ? begun : later).push_back(i);
    }
    const auto number = [&](size_t i, int64_t row) {
      return *all[0].oracle.next + static_cast<int>(i * 100 + row);
    };
    std::vector<KvPages> pages(all.size());
    for (int layer = 0; layer < kLayers; ++layer) {
      for (const size_t i : begun) {
        pages[i] = *all[i].kv->BeginLayer(layer, kGoOn);
      }
      for (const size_t i : begun) {
        Check(pages[i], layer, all[i].oracle, view_of(i));
        for (int64_t row = 0; row < rows; ++row) {
          Write(pages[i], layer, all[i].oracle, row, number(i, row));
        }
      }
      for (const size_t i : begun) all[i].kv->EndLayer(layer);
    }
    for (const size_t i : begun) {
      EXPECT_TRUE(all[i].kv->Commit(rows, kGoOn).ok());
      for (int64_t row = 0; row < rows; ++row) {
        all[i].oracle.numbers.push_back(number(i, row));
      }
    }
    if (at_first == 0) at_first = static_cast<int>(begun.size());
    if (begun.empty()) {
      ADD_FAILURE() << "there is no room for one";
      return 0;
    }
    waiting = std::move(later);
  }
  *all[0].oracle.next += static_cast<int>(all.size()) * 100;
  return at_first;
}

// Forks of one text sweep at once: each reads its own, and what they share
// crosses the link once for all.
TEST(ForksTest, ForksSweepTogether) {
  for (const int64_t resident : {0, 3, 12}) {
    constexpr int kForks = 3;
    const ForkPages planned = {.count = kForks, .pages = 4};
    const TierForTest made = OnFastLink(resident, /*newest_pages=*/0, planned);
    int next = 1;
    std::vector<Forked> all;
    all.push_back({std::make_unique<TieredKv>(made.tier, 0), {{}, &next}});
    Step(*all[0].kv, all[0].oracle, 1000);
    for (int i = 0; i < kForks; ++i) {
      all.push_back({*all[0].kv->Fork(), all[0].oracle});
    }
    for (int64_t rows : {1, 50, 60, 1, 60, 64, 1, 1}) {
      const int at_first = StepTogether(all, rows, {View::Full()});
      if (rows == 1) {
        ASSERT_EQ(at_first, kForks + 1);
      }
      ASSERT_FALSE(testing::Test::HasFailure()) << rows;
    }
    const auto swept = [&] {
      int64_t pages = 0;
      for (const Forked& fork : all) pages += fork.kv->moves().swept_pages;
      return pages;
    };
    const int64_t before = swept();
    ASSERT_EQ(StepTogether(all, 1, {View::Full()}), kForks + 1);
    if (resident < kContextPages) {  // one page of each is no longer open
      EXPECT_EQ(swept() - before, kLayers * (7 - resident + (kForks + 1) * 2));
    }
    // Windows of some are read in place beside sweeps of others.
    const std::vector<View> views = {View::Full(), View::Window(4, 20)};
    for (int i = 0; i < 4; ++i) {
      ASSERT_EQ(StepTogether(all, 1, views), kForks + 1);
    }
    // One leaves, one steps alone, and the others go on.
    all.erase(all.begin() + 1);
    Step(*all[1].kv, all[1].oracle, 3);
    ASSERT_EQ(StepTogether(all, 1, {View::Full()}), kForks);
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

// Without memory planned for forks some find no room beside the others: they
// are as before, and step later.
TEST(ForksTest, ForksWithoutRoomStepLater) {
  const Made made = Make(/*resident=*/1, 0);
  int next = 1;
  std::vector<Forked> all;
  all.push_back({std::make_unique<TieredKv>(made.tier, 0), {{}, &next}});
  Step(*all[0].kv, all[0].oracle, 1000);
  for (int i = 0; i < 5; ++i) {
    all.push_back({*all[0].kv->Fork(), all[0].oracle});
  }
  for (int turn = 0; turn < 12; ++turn) {
    ASSERT_LT(StepTogether(all, 40, {View::Full()}), 6);
    ASSERT_FALSE(testing::Test::HasFailure()) << turn;
  }
}

// A step whose layers have ended for all but one sequence ends when that one
// leaves it, or ends itself; and a sequence may end before the others' step.
TEST(ForksTest, SomeMayLeaveOrEnd) {
  enum class Ends { kNone, kSlow, kQuick };
  for (const Ends ends : {Ends::kNone, Ends::kSlow, Ends::kQuick}) {
    const TierForTest made = OnFastLink(
        /*resident_pages=*/0, /*newest_pages=*/0, {.count = 2, .pages = 2});
    int next = 1;
    Oracle oracle{{}, &next};
    std::unique_ptr<KvStore> quick = std::make_unique<TieredKv>(made.tier, 0);
    Step(*quick, oracle, 1000);
    std::unique_ptr<KvStore> slow = *quick->Fork();
    Oracle slows = oracle;
    for (KvStore* const store : {quick.get(), slow.get()}) {
      ASSERT_TRUE(
          store->BeginStep(1, Phase::kVerify, View::Full(), kGoOn).ok());
    }
    ASSERT_TRUE(slow->BeginLayer(0, kGoOn).ok());
    ASSERT_TRUE(Layers(*quick, oracle, 1).ok());
    ASSERT_TRUE(quick->Commit(1, kGoOn).ok());
    oracle.numbers.push_back(next++);
    if (ends == Ends::kQuick) quick.reset();
    if (ends == Ends::kSlow) slow.reset();
    if (slow != nullptr) slow->Abandon();
    for (int i = 0; i < 2; ++i) {
      if (quick != nullptr) Step(*quick, oracle, 1);
      if (slow != nullptr) Step(*slow, slows, 1);
    }
    ASSERT_FALSE(HasFailure());
  }
}

// A step that finds no room is not shown to its observer, whose state stays.
TEST(ForksTest, AStepWithoutRoomIsNotSeen) {
  StepSpy spy;
  const Made made = Make(/*resident=*/0, 0);
  int next = 1;
  Oracle oracle{{}, &next};
  Step(*made.kv, oracle, 1000);
  std::vector<std::unique_ptr<KvStore>> forks;
  absl::Status status;
  while (status.ok()) {
    forks.push_back(*made.kv->Fork());
    forks.back()->Observe(&spy);
    spy.Seen();
    status = forks.back()->BeginStep(1, Phase::kVerify, View::Full(), kGoOn);
  }
  EXPECT_EQ(CodeOf(status), "out_of_memory");
  EXPECT_EQ(spy.Seen(), std::vector<std::string>());
  for (const auto& fork : forks) fork->Observe(nullptr);
}

// A sequence that finds no room in the buffers leaves that of the others.
TEST(ForksTest, BuffersHaveRoomForSome) {
  const TierForTest made = OnFastLink(/*resident_pages=*/0, /*newest_pages=*/0,
                                      {.count = 3, .pages = 0});
  int next = 1;
  Oracle oracle{{}, &next};
  TieredKv kv(made.tier, 0);
  Step(kv, oracle, 1000);
  const std::unique_ptr<KvStore> other = *kv.Fork();
  Oracle others = oracle;
  CutTo(*other, others, 128);
  Step(*other, others, 900);  // shares one page, and has seven more
  const std::unique_ptr<KvStore> longer = *kv.Fork();
  Oracle longers = oracle;
  Step(*longer, longers, 66);  // has one more
  const auto begin = [](KvStore& store) {
    return store.BeginStep(1, Phase::kVerify, View::Full(), kGoOn);
  };
  const std::unique_ptr<KvStore> another = *other->Fork();
  ASSERT_TRUE(begin(kv).ok());
  EXPECT_EQ(CodeOf(begin(*other)), "out_of_memory");
  EXPECT_EQ(CodeOf(begin(*another)), "out_of_memory");
  ASSERT_TRUE(begin(*longer).ok());
  for (KvStore* const store : {static_cast<KvStore*>(&kv), longer.get()}) {
    store->Abandon();
  }
  Step(*other, others, 1);
  Step(*longer, longers, 1);
}

// A fork that diverges within a resident page gets a resident page of its own;
// if there is no room, the other sequence's page leaves the device.
TEST(ForksTest, ResidentPagesMakeRoomForAFork) {
  const Made made = Make(/*resident=*/1, 0);
  int next = 1;
  Oracle oracle{{}, &next};
  Step(*made.kv, oracle, 1000);
  const std::unique_ptr<KvStore> fork = *made.kv->Fork();
  Oracle forked = oracle;
  CutTo(*fork, forked, 100);
  Step(*fork, forked, 60);  // it needs a second page; only one slot is free
  Step(*made.kv, oracle, 60);
  Step(*made.kv, oracle, 1);
  Step(*fork, forked, 64);
  Step(*fork, forked, 1);
}

// A step takes the slot of a page that is below already, from all sequences
// that share it, and the last such page: the sinks, which every view reads,
// stay longest.
TEST(ForksTest, AStepTakesWhatCostsLeast) {
  const Made made = Make(/*resident=*/2, 0);  // five slots
  int next = 1;
  Oracle oracle{{}, &next};
  Step(*made.kv, oracle, 1000);
  const std::unique_ptr<KvStore> like = *made.kv->Fork();
  const std::unique_ptr<KvStore> other = *made.kv->Fork();
  Oracle alike = oracle;
  Oracle others = oracle;
  CutTo(*other, others, 0);
  Step(*other, others, 300);  // takes three slots, of which two are free
  EXPECT_EQ(other->moves().closed_pages, 2 * kLayers);
  Step(*like, alike, 1, View::Window(4, 20));
  EXPECT_EQ(like->moves().swept_pages, 0);
  EXPECT_EQ(like->moves().reopened_pages, 0);
  Step(*like, alike, 1);
  EXPECT_EQ(like->moves().reopened_pages, kLayers);
  Step(*made.kv, oracle, 1);
  EXPECT_EQ(made.kv->moves().reopened_pages, kLayers);
}

// Pages that others share with the sequence that steps stay: to take them would
// free no slot.
TEST(ForksTest, AStepTakesNothingThatItHas) {
  const Made made = Make(/*resident=*/2, 0);
  int next = 1;
  Oracle oracle{{}, &next};
  Step(*made.kv, oracle, 1000);
  const std::unique_ptr<KvStore> first = *made.kv->Fork();
  const std::unique_ptr<KvStore> second = *made.kv->Fork();
  Oracle ones = oracle;
  Oracle twos = oracle;
  Step(*first, ones, 1);
  Step(*made.kv, oracle, 1);
  Step(*second, twos, 30);  // a copy of the open page, and a new one
  // The open page of the sequence that stepped longest ago went down for them.
  EXPECT_EQ(second->moves().closed_pages, 2 * kLayers);
  EXPECT_EQ(first->moves().closed_pages, 0);
  EXPECT_EQ(first->HostBytes(), 8 * kLayers * kLayout.PageBytes());
  EXPECT_EQ(made.kv->HostBytes(), 7 * kLayers * kLayout.PageBytes());
  Step(*first, ones, 1);
  EXPECT_EQ(first->moves().reopened_pages, kLayers);
}

// The newest pages come back, too, and none of them leaves for another of them.
TEST(ForksTest, TheNewestPagesComeBackOnce) {
  const TierForTest made = OnFastLink(/*resident_pages=*/0, /*newest_pages=*/2);
  int next = 1;
  Oracle oracle{{}, &next};
  TieredKv kv(made.tier, 0);
  Step(kv, oracle, 1000);
  std::vector<std::unique_ptr<KvStore>> forks;
  for (int i = 0; i < 2; ++i) {  // each fork takes three of the five slots
    forks.push_back(*kv.Fork());
    Oracle forked = oracle;
    CutTo(*forks.back(), forked, 0);
    Step(*forks.back(), forked, 700);
  }
  for (int i = 0; i < 3; ++i) Step(kv, oracle, 1);
  EXPECT_EQ(kv.moves().reopened_pages, 2 * kLayers);
  const int64_t swept = kv.moves().swept_pages;
  Step(kv, oracle, 1, View::Window(0, 200));
  EXPECT_EQ(kv.moves().swept_pages, swept);
}

// If the context is full, a layer buffer has no room for a resident page whose
// slot a fork has taken: the page comes back for its sequence's step.
TEST(ForksTest, AFullContextAndItsForksTakeTurns) {
  for (const int64_t resident : {0, 1, 4, 12}) {
    const Made made = Make(resident, 0);
    int next = 1;
    Oracle oracle{{}, &next};
    Step(*made.kv, oracle, kContextPages * kPageTokens - 10);
    for (const int64_t cut : {100, 700, 1500}) {
      std::unique_ptr<KvStore> fork = *made.kv->Fork();
      Oracle forked = oracle;
      CutTo(*fork, forked, cut);
      Step(*fork, forked, 1530 - cut);
      for (int turn = 0; turn < 3; ++turn) {
        Step(*fork, forked, 1);
        Step(*made.kv, oracle, 1);
      }
      fork.reset();
      Step(*made.kv, oracle, 1);
      CutTo(*made.kv, oracle, kContextPages * kPageTokens - 10);
      ASSERT_FALSE(HasFatalFailure());
    }
  }
}

// When one of a page's two owners writes to it, the copy below remains that of
// the other alone.
TEST(ForksTest, AForksOwnPageIsNotBelow) {
  const Made made = Make(/*resident=*/0, 0);
  int next = 1;
  Oracle oracle{{}, &next};
  Step(*made.kv, oracle, 100);
  Step(*made.kv, oracle, 40);
  const std::unique_ptr<KvStore> fork = *made.kv->Fork();
  Oracle forked = oracle;
  EXPECT_EQ(fork->HostBytes(), kLayers * kLayout.PageBytes());
  CutTo(*fork, forked, 100);
  ASSERT_TRUE(fork->BeginStep(1, Phase::kVerify, View::Full(), kGoOn).ok());
  fork->Abandon();
  EXPECT_EQ(fork->HostBytes(), 0);
  EXPECT_EQ(made.kv->HostBytes(), kLayers * kLayout.PageBytes());
  Step(*fork, forked, 1);
}

// Pages that a fork has fetched ahead stay, whatever becomes of its origin.
TEST(ForksTest, AnInterruptedPromptEndsApartFromForks) {
  Made made = Make(1, 0, std::numeric_limits<int64_t>::max(), /*rate=*/4e6);
  int next = 1;
  Oracle oracle{{}, &next};
  Step(*made.kv, oracle, 700);
  std::unique_ptr<KvStore> fork = *made.kv->Fork();
  Oracle forked = oracle;
  std::vector<std::byte> state(96);
  ASSERT_TRUE(
      made.kv->BeginStep(100, Phase::kPrefill, View::Full(), kGoOn).ok());
  ASSERT_TRUE(made.kv->Suspend(0, 0, InPlace(state.data()), 96).ok());
  Step(*fork, forked, 1);  // its next step's pages are on their way
  made.kv.reset();
  Step(*fork, forked, 1);
}

// A prompt that goes on takes the buffers from a fork that has stepped
// meanwhile: the pages which that has fetched ahead are overwritten.
TEST(ForksTest, AResumedPromptTakesTheBuffers) {
  for (const int layer : {0, 1, 2}) {
    const Made made = Make(/*resident=*/0, 0);
    int next = 1;
    Oracle oracle{{}, &next};
    Step(*made.kv, oracle, 700);
    const std::unique_ptr<KvStore> fork = *made.kv->Fork();
    Oracle forked = oracle;
    CutTo(*fork, forked, 200);
    Step(*fork, forked, 500);  // the fork has other pages
    std::vector<std::byte> state(96);
    ASSERT_TRUE(
        made.kv->BeginStep(66, Phase::kPrefill, View::Full(), kGoOn).ok());
    for (int before = 0; before < layer; ++before) {
      const KvPages pages = *made.kv->BeginLayer(before, kGoOn);
      for (int row = 0; row < 66; ++row) {
        Write(pages, before, oracle, row, 1000 + row);
      }
      made.kv->EndLayer(before);
    }
    if (layer > 0) {
      ASSERT_TRUE(made.kv->BeginLayer(layer, kGoOn).ok());
    }
    ASSERT_TRUE(made.kv->Suspend(layer, 0, InPlace(state.data()), 96).ok());
    next = 2000;
    Step(*fork, forked, 1);
    next = 1000;
    ASSERT_TRUE(made.kv->Resume(InPlace(state.data()), kGoOn).ok());
    ASSERT_TRUE(Layers(*made.kv, oracle, 66, layer).ok());
    ASSERT_TRUE(made.kv->Commit(66, kGoOn).ok());
    for (int row = 0; row < 66; ++row) oracle.numbers.push_back(1000 + row);
    next = 3000;
    Step(*made.kv, oracle, 1);
    Step(*fork, forked, 1);
    ASSERT_FALSE(HasFailure()) << layer;
  }
}

// A sequence whose call has failed no longer holds its slots: its fork can take
// all that it needs.
TEST(ForksTest, WhoFailedIsNotAtWork) {
  for (int64_t fail_at = 0;; ++fail_at) {
    const Made made = Make(/*resident=*/4, 0, fail_at);
    int next = 1;
    Oracle oracle{{}, &next};
    const auto again = [&](KvStore& kv, Oracle& own, int64_t rows,
                           KvStore* other, Oracle* others) {
      for (int tries = 0; !TryStep(kv, own, rows, rows).ok(); ++tries) {
        ASSERT_LT(tries, 2);
        if (other != nullptr) Step(*other, *others, 1);
      }
    };
    again(*made.kv, oracle, 1000, nullptr, nullptr);
    const std::unique_ptr<KvStore> fork = *made.kv->Fork();
    Oracle forked = oracle;
    CutTo(*fork, forked, 0);
    again(*fork, forked, 600, nullptr, nullptr);  // takes five of seven slots
    std::vector<std::byte> state(96);
    for (int turn = 0; turn < 2; ++turn) {
      again(*made.kv, oracle, 1, fork.get(), &forked);
      again(*fork, forked, 1, made.kv.get(), &oracle);
      if (!made.kv->BeginStep(66, Phase::kPrefill, View::Full(), kGoOn).ok() ||
          !made.kv->Suspend(0, 0, InPlace(state.data()), 96).ok()) {
        made.kv->Abandon();
      } else {
        again(*fork, forked, 1, nullptr, nullptr);
        if (!made.kv->Resume(InPlace(state.data()), kGoOn).ok()) {
          Step(*fork, forked, 1);
        }
        made.kv->Abandon();
      }
      ASSERT_FALSE(HasFailure());
    }
    again(*made.kv, oracle, 1, fork.get(), &forked);
    CutTo(*made.kv, oracle, 7 * kPageTokens);
    const int64_t slots = made.HostSlots();
    const absl::Status loaded = made.kv->Load(
        200,
        [](KvStore::PutPage, KvStore::PlacePage) {
          return absl::InternalError("a fault of the test");
        },
        kGoOn);
    EXPECT_FALSE(loaded.ok());
    EXPECT_EQ(made.HostSlots(), slots);
    again(*fork, forked, 1, nullptr, nullptr);
    ASSERT_FALSE(HasFailure());
    if (!made.copy->happened()) break;
  }
}

// If all pages are on the device and nowhere else there are enough for one
// sequence: a fork's step that would need more takes none.
TEST(ForksTest, AStepWithoutPagesTakesNone) {
  HeapMemory memory;
  auto pool = std::make_shared<PagePool>(
      *PagePool::OnDevice(kLayout, kLayers, /*slots=*/4, memory));
  int next = 1;
  Oracle oracle{{}, &next};
  InPlaceKv kv(pool, 0);
  Step(kv, oracle, 300);
  const std::unique_ptr<KvStore> fork = *kv.Fork();
  Oracle forked = oracle;
  // The step needs a copy of the open page, and one more page.
  EXPECT_EQ(CodeOf(TryStep(*fork, forked, 100, 100)), "out_of_memory");
  EXPECT_EQ(pool->slots_in_use(), 3);
  Step(kv, oracle, 1);  // the open page is its own from now on
  Step(kv, oracle, 80);
  Step(*fork, forked, 84);
  EXPECT_EQ(CodeOf(TryStep(*fork, forked, 1, 1)), "out_of_memory");
}

// ---- Any order of turns ----

// Fails transfers now and then; their number alone decides.
class UnreliableLink final : public Link {
 public:
  UnreliableLink(uint32_t seed, uint32_t of_1024)
      : link_(1e12, 0), noise_(seed), of_1024_(of_1024) {}
  absl::StatusOr<Moved> Copy(const Transfer& transfer, Clock::Time since,
                             const std::atomic<bool>& drop) override {
    noise_ = noise_ * 1664525 + 1013904223;
    if (noise_ >> 22 < of_1024_) {
      return DeviceError("copy_failed", "a fault of the test");
    }
    return link_.Copy(transfer, since, drop);
  }
  void Forget(const HostRegion& region) override { link_.Forget(region); }

 private:
  SimulatedLink link_;
  uint32_t noise_;  // used on the engine's thread
  const uint32_t of_1024_;
};

// One sequence of a family, and its expected contents.
struct Member {
  std::unique_ptr<KvStore> kv;
  Oracle oracle;
  // A prompt that was stopped in `layer` with `row` of its `rows` done.
  struct Stopped {
    int64_t rows;
    int64_t row;
    int layer;
    int first_number;
    std::vector<std::byte> state;
  };
  std::optional<Stopped> stopped = {};
};

// Forks that step, draft, are truncated, stop in prompts and go on, and come
// and go, on a tier that one of them would fill, over a link that fails now and
// then.
class Family {
 public:
  explicit Family(uint64_t seed)
      : random_(static_cast<unsigned>(seed)),
        unreliable_(seed % 2 == 1),
        begin_(seed % 4 < 2 ? 0 : 70) {
    const int64_t resident =
        std::vector<int64_t>{0, 1, 3, kContextPages}[seed / 2 % 4];
    const int64_t newest =
        std::min<int64_t>(Below(3), kContextPages - resident);
    TierForTest made(kLayout, kLayers, kContextPages, resident,
                     std::make_unique<UnreliableLink>(
                         static_cast<uint32_t>(seed), unreliable_ ? 6 : 0),
                     newest);
    memory_ = std::move(made.memory);
    tier_ = std::move(made.tier);
    members_.push_back(
        {std::make_unique<TieredKv>(tier_, begin_), Oracle{{}, &next_}});
  }

  void TakeATurn() {
    Member& member = *(members_.begin() + AnyMember());
    const int64_t length = member.kv->length();
    const int64_t room = kContextPages * kPageTokens - begin_ - length;
    const int64_t rows = std::min<int64_t>(room, 1 + Below(64));
    switch (Below(10)) {
      case 0:
        if (members_.size() < 4) Fork(member);
        return;
      case 1:
        if (members_.size() > 1 && Below(2) == 0) {
          members_.erase(members_.begin() + AnyMember());
        }
        return;
      case 2:
        member.stopped.reset();
        CutTo(*member.kv, member.oracle, Below(length + 1));
        return;
      case 3:
      case 4:
        return Prompt(member, std::min<int64_t>(room, 65 + Below(900)));
      case 5:
        return Again(member, rows, Below(rows + 1), View::Full());
      case 6:
        return Again(member, rows, rows, View::Window(4, 1 + Below(300)));
      default:
        for (int64_t i = Below(4); i >= 0; --i) {
          if (member.kv->length() == length + room) return;
          Again(member, 1, 1, View::Full());
        }
    }
  }

  // Ends all sequences but one. That one then moves as much as it would have
  // moved alone.
  void EndAlone() {
    members_.resize(1);
    Member& last = members_.front();
    CutTo(*last.kv, last.oracle, std::min<int64_t>(last.kv->length(), 1400));
    if (last.kv->length() < 1400) {
      last.stopped.reset();
      Again(last, 1400 - last.kv->length(), 1400 - last.kv->length(),
            View::Full());
    }
    if (unreliable_) return;
    for (int i = 0; i < 2; ++i) Again(last, 1, 1, View::Full());
    const KvMoves before = last.kv->moves();
    Again(last, 1, 1, View::Full());
    const int64_t staged = std::max<int64_t>(
        0, (begin_ % kPageTokens + 1402) / kPageTokens -
               tier_->shape.resident_pages - tier_->shape.newest_pages);
    EXPECT_EQ(last.kv->moves().swept_pages - before.swept_pages,
              staged * kLayers);
    EXPECT_EQ(last.kv->moves().reopened_pages, before.reopened_pages);
  }

  const KvTier& tier() const { return *tier_; }

 private:
  int64_t Below(int64_t n) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(n));
  }
  std::ptrdiff_t AnyMember() { return Below(std::ssize(members_)); }

  // Repeats a step until it succeeds. Only copies fail, and a failure leaves
  // the sequence as it was.
  void Again(Member& member, int64_t rows, int64_t kept, const View& view) {
    if (rows == 0) return;
    member.stopped.reset();
    for (int tries = 0;; ++tries) {
      const absl::Status status =
          TryStep(*member.kv, member.oracle, rows, kept, view);
      if (status.ok()) return;
      ASSERT_TRUE(unreliable_) << status;
      ASSERT_EQ(CodeOf(status), "copy_failed") << status;
      ASSERT_LT(tries, 50);
      next_ += static_cast<int>(rows);  // lost rows' numbers are not used again
    }
  }

  void Fork(Member& member) {
    Member fork = {*member.kv->Fork(), member.oracle};
    members_.push_back(std::move(fork));
  }

  // Goes on with the prompt that was stopped, or begins one, and may stop it.
  void Prompt(Member& member, int64_t rows) {
    KvStore& kv = *member.kv;
    if (member.stopped.has_value()) {
      const Member::Stopped stopped = *std::exchange(member.stopped, {});
      std::vector<std::byte> state(stopped.state.size());
      const int next = std::exchange(next_, stopped.first_number);
      absl::Status status = kv.Resume(InPlace(state.data()), kGoOn);
      if (status.ok()) {
        EXPECT_EQ(state, stopped.state);
        status =
            Layers(kv, member.oracle, stopped.rows, stopped.layer, stopped.row);
      }
      if (status.ok()) status = kv.Commit(stopped.rows, kGoOn);
      next_ = next;
      if (!status.ok()) {
        EXPECT_TRUE(unreliable_) << status;
        EXPECT_EQ(CodeOf(status), "copy_failed");
        return kv.Abandon();
      }
      for (int64_t i = 0; i < stopped.rows; ++i) {
        member.oracle.numbers.push_back(stopped.first_number +
                                        static_cast<int>(i));
      }
      return;
    }
    if (rows <= kMaxStepRows || Below(2) == 0) {
      return Again(member, rows, rows, View::Full());
    }
    Member::Stopped stopped = {
        .rows = rows,
        .row = Below(rows),
        .layer = static_cast<int>(Below(kLayers)),
        .first_number = next_,
        .state = std::vector<std::byte>(96, std::byte(next_ % 251))};
    absl::Status status =
        kv.BeginStep(rows, Phase::kPrefill, View::Full(), kGoOn);
    for (int layer = 0; status.ok() && layer <= stopped.layer; ++layer) {
      const absl::StatusOr<KvPages> pages = kv.BeginLayer(layer, kGoOn);
      status = pages.status();
      if (!pages.ok()) break;
      Check(*pages, layer, member.oracle, View::Full());
      const bool last = layer == stopped.layer;
      for (int64_t i = 0; i < (last ? stopped.row : rows); ++i) {
        Write(*pages, layer, member.oracle, i, next_ + static_cast<int>(i));
      }
      if (!last) kv.EndLayer(layer);
    }
    next_ += static_cast<int>(rows);
    if (status.ok())
      status = kv.Suspend(stopped.layer, stopped.row,
                          InPlace(stopped.state.data()), 96);
    if (status.ok()) {
      member.stopped = std::move(stopped);
      return;
    }
    EXPECT_TRUE(unreliable_) << status;
    EXPECT_EQ(CodeOf(status), "copy_failed");
    kv.Abandon();
  }

  std::mt19937 random_;
  const bool unreliable_;
  const int64_t begin_;
  int next_ = 1;
  std::unique_ptr<BoundedMemory> memory_;
  std::shared_ptr<KvTier> tier_;
  std::vector<Member> members_;
};

TEST(ForksTest, AnyOrderOfTurns) {
  for (const uint64_t seed : TrialSeeds(24)) {
    SCOPED_TRACE("TIERCEL_TRIAL_SEED=" + std::to_string(seed));
    Family family(seed);
    for (int turn = 0; turn < 60 && !testing::Test::HasFailure(); ++turn) {
      family.TakeATurn();
    }
    if (!testing::Test::HasFailure()) family.EndAlone();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace tiercel::kv_store_test
