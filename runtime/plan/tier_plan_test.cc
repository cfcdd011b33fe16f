#include "runtime/plan/tier_plan.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace tiercel {
namespace {

TierNeeds Needs(int layers, int64_t context) {
  return {.layout = {DType::kF16, DType::kF16, /*kv_heads=*/3,
                     /*head_dim=*/64},
          .layers = layers,
          .context = context,
          .first_position = 0,
          .weights = 1'000'000,
          .workspace = 64'000,
          .views = 128'000};
}

TEST(TierPlanTest, EveryBudgetIsUsedAsFarAsPagesGo) {
  for (int layers : {1, 2, 3, 30}) {
    for (int64_t context : {1, 128, 129, 8192}) {
      const TierNeeds needs = Needs(layers, context);
      const int64_t least = PlanTiers(needs, 0).DeviceBytes();
      EXPECT_FALSE(PlanTiers(needs, least - 1).fits());
      int64_t resident = 0;
      for (int64_t budget = least; budget < least + 300'000'000;
           budget += 999'983) {
        const TierPlan plan = PlanTiers(needs, budget);
        ASSERT_TRUE(plan.fits()) << budget;
        ASSERT_EQ(plan.shape.resident_pages + plan.shape.staged_pages,
                  plan.shape.context_pages);
        // A larger budget never keeps fewer pages, and the rest of it would not
        // hold one more.
        ASSERT_GE(plan.shape.resident_pages, resident);
        resident = plan.shape.resident_pages;
        if (plan.shape.staged_pages > 0 && layers > 2) {
          ASSERT_LT(budget - plan.DeviceBytes(),
                    (layers - 2) * needs.layout.PageBytes() + 256);
        }
      }
      EXPECT_EQ(resident, (context + kPageTokens - 1) / kPageTokens);
    }
  }
}

TEST(TierPlanTest, PartsAreThoseThatAreTaken) {
  const TierNeeds needs = Needs(30, 8000);
  const TierPlan plan = PlanTiers(needs, 60'000'000);
  ASSERT_TRUE(plan.fits());
  const int64_t page = needs.layout.PageBytes();
  EXPECT_EQ(page, 98304);
  EXPECT_EQ(plan.shape.context_pages, 63);
  EXPECT_EQ(plan.staging, 2 * plan.shape.staged_pages * page);
  EXPECT_EQ(plan.resident, (plan.shape.resident_pages + 3) * 30 * page);
  EXPECT_EQ(plan.host_kv, 63 * 30 * page);
  EXPECT_EQ(plan.DeviceBytes(), 1'192'000 + plan.staging + plan.resident);
}

// The pages that must stay fit on the smallest device, and no budget leaves
// room for one more page than it keeps.
TEST(TierPlanTest, SomePagesMustStay) {
  TierNeeds needs = Needs(30, 8000);
  const int64_t page = needs.layout.PageBytes();
  const int64_t before = PlanTiers(needs, 0).DeviceBytes();
  needs.resident_pages = 2;
  needs.newest_pages = 9;
  const int64_t least = PlanTiers(needs, 0).DeviceBytes();
  // Two resident pages give back their places in both buffers.
  EXPECT_EQ(least - before, (11 * 30 - 2 * 2) * page);
  int64_t resident = 2;
  for (int64_t budget = least; budget < least + 300'000'000;
       budget += 1'999'993) {
    const TierPlan plan = PlanTiers(needs, budget);
    ASSERT_TRUE(plan.fits()) << budget;
    ASSERT_GE(plan.shape.resident_pages, resident);
    resident = plan.shape.resident_pages;
    ASSERT_EQ(plan.shape.newest_pages, resident == 63 ? 0 : 9);
    ASSERT_EQ(plan.shape.Slots(), resident + plan.shape.newest_pages + 3);
    if (resident < 63) {
      ASSERT_LT(budget - plan.DeviceBytes(), 28 * page + 256);
    }
  }
  EXPECT_EQ(resident, 63);
  // A text shorter than its window is all resident, and needs no buffers.
  needs.context = 500;
  EXPECT_EQ(PlanTiers(needs, 0).shape.resident_pages, 4);
  EXPECT_EQ(PlanTiers(needs, 0).shape.newest_pages, 0);
}

// Forks that step at once have places in the buffers, slots for the pages that
// they write, and pages below; if all pages are resident theirs are, too.
TEST(TierPlanTest, ForksHaveMemoryOfTheirOwn) {
  TierNeeds needs = Needs(30, 8000);
  const int64_t page = needs.layout.PageBytes();
  const TierPlan alone = PlanTiers(needs, 0);
  needs.newest_pages = 2;
  needs.forks = {.count = 3, .pages = 5};
  const TierPlan plan = PlanTiers(needs, 0);
  EXPECT_EQ(plan.shape.resident_pages, 0);
  EXPECT_EQ(plan.shape.staged_pages, 63 + 15);
  EXPECT_EQ(plan.shape.Slots(), 2 + 3 + 3 * (2 + 1));
  EXPECT_EQ(plan.shape.PoolPages(), 63 + 15);
  EXPECT_EQ(plan.host_kv, (63 + 15) * 30 * page);
  EXPECT_EQ(plan.DeviceBytes() - alone.DeviceBytes(),
            (2 * 15 + (2 + 3 * 3) * 30) * page);
  const TierPlan all = PlanTiers(needs, int64_t{1} << 40);
  EXPECT_EQ(all.shape.staged_pages, 0);
  EXPECT_EQ(all.shape.Slots(), 63 + 3 + 3 * (5 + 1));
  EXPECT_EQ(PlanOnDevice(needs, 0).resident,
            AlignedBytes((63 + 15) * 30 * page));
  // The pages of forks are in the host tier first.
  const TierPlan disk = PlanWithDisk(needs, 0, 20 * 30 * page);
  EXPECT_EQ(disk.shape.disk_pages, 63 - 5);
  EXPECT_EQ(disk.host_kv, 20 * 30 * page);
}

// All hidden states stay on the device only if all pages do; else as few as
// possible, so that pages have the memory.
TEST(TierPlanTest, HiddenStatesGoBelowBeforePagesDo) {
  TierNeeds needs = Needs(30, 8000);
  needs.state_bytes = 2304;
  needs.tile_rows = 1536;
  const int64_t most = PlanTiers(needs, int64_t{1} << 40).DeviceBytes();
  const TierPlan all = PlanTiers(needs, most);
  EXPECT_EQ(all.state_rows, 8000);
  EXPECT_EQ(all.host_states, 8000 * 2304);  // for a prompt that is stopped
  EXPECT_EQ(all.workspace, 64'000 + 8000 * 2304);
  const TierPlan less = PlanTiers(needs, most - 1);
  EXPECT_EQ(less.shape.resident_pages, 63);
  EXPECT_EQ(less.state_rows, 1536);
  EXPECT_EQ(less.host_states, 8000 * 2304);
  EXPECT_EQ(less.workspace, 64'000 + 1536 * 2304);
  const TierPlan least = PlanTiers(needs, 0);
  EXPECT_EQ(least.shape.resident_pages, 0);
  EXPECT_EQ(least.state_rows, 1536);
  // The hidden states of a short text fit on the device wherever its pages are.
  needs.context = 1500;
  EXPECT_EQ(PlanTiers(needs, 0).state_rows, 1500);
  // All hidden states count as on the device where host and device are one
  // memory.
  needs.context = 8000;
  EXPECT_EQ(PlanInPlace(needs, 0).state_rows, 8000);
  EXPECT_EQ(PlanInPlace(needs, 0).host_states, 0);
  EXPECT_EQ(PlanOnDevice(needs, 0).state_rows, 8000);
  EXPECT_EQ(PlanOnDevice(needs, 0).host_states, 0);
}

// If host and device are one memory, the host's bytes count in the budget.
TEST(TierPlanTest, WhatTokensAreDrawnFromIsOfTheHost) {
  TierNeeds needs = Needs(30, 8000);
  const TierPlan without = PlanInPlace(needs, 0);
  needs.distributions = 700;
  TierPlan plan = PlanInPlace(needs, 0);
  EXPECT_EQ(plan.DeviceBytes(), without.DeviceBytes());
  EXPECT_EQ(plan.HostBytes(), without.HostBytes() + 700);
  plan.budget = plan.DeviceBytes() + plan.host_kv + 700;
  EXPECT_TRUE(plan.fits());
  --plan.budget;
  EXPECT_FALSE(plan.fits());
  EXPECT_EQ(PlanTiers(needs, 0).host_distributions, 700);
}

// A workspace that is taken already is not planned once more.
TEST(TierPlanTest, AWorkspaceThatIsThereIsNotTaken) {
  TierNeeds needs = Needs(30, 8000);
  needs.state_bytes = 2304;
  const TierPlan first = PlanInPlace(needs, 0);
  needs.states_there = 5000 * 2304;
  EXPECT_EQ(PlanInPlace(needs, 0).workspace, first.workspace - 5000 * 2304);
  needs.states_there = 9000 * 2304;
  EXPECT_EQ(PlanInPlace(needs, 0).workspace, 64'000);
}

// Every page is either in the host tier, as far as its budget goes, or on disk;
// resident pages go to disk first.
TEST(TierPlanTest, PagesWithoutRoomAreOnDisk) {
  const TierNeeds needs = Needs(30, 8000);
  const int64_t slot = 30 * needs.layout.PageBytes();
  const int64_t resident = PlanTiers(needs, 60'000'000).shape.resident_pages;
  ASSERT_GT(resident, 0);
  int64_t before = 0;
  for (int64_t in_host = 0; in_host <= 63; ++in_host) {
    const TierPlan plan =
        PlanWithDisk(needs, 60'000'000, in_host * slot + slot / 2);
    const TierShape& shape = plan.shape;
    EXPECT_TRUE(plan.fits());
    EXPECT_EQ(shape.resident_pages, resident);
    EXPECT_EQ(plan.host_kv, in_host * slot);
    EXPECT_EQ(plan.disk_kv, (63 - in_host) * slot);
    EXPECT_EQ(shape.OnDisk(0, 63), 63 - in_host);
    // A larger host tier never makes a sweep read more from disk.
    const int64_t swept = shape.OnDisk(resident, 63);
    EXPECT_EQ(swept, std::max<int64_t>(0, 63 - in_host - resident));
    EXPECT_TRUE(in_host == 0 || swept <= before);
    before = swept;
  }
  EXPECT_EQ(PlanWithDisk(needs, 60'000'000, -1).host_kv, 0);
}

TEST(TierPlanTest, PagesFollowAbsolutePositions) {
  TierNeeds needs = Needs(3, 130);
  needs.first_position = 127;
  EXPECT_EQ(PlanTiers(needs, 0).shape.context_pages, 3);
  needs.first_position = 3 * kPageTokens - 1;  // no pages before the first
  EXPECT_EQ(PlanTiers(needs, 0).shape.context_pages, 3);
}

TEST(TierPlanTest, InPlaceBothTiersAreOfOneBudget) {
  const TierNeeds needs = Needs(30, 8000);
  const int64_t kv = int64_t{63} * 30 * 98304;
  for (const int64_t off : {-1, 0}) {
    const TierPlan plan = PlanInPlace(needs, 1'192'000 + kv + off);
    EXPECT_EQ(plan.fits(), off == 0);
    EXPECT_TRUE(plan.in_place);
    EXPECT_EQ(plan.host_kv, kv);
    EXPECT_EQ(plan.DeviceBytes(), 1'192'000);  // without any page
    EXPECT_EQ(plan.shape.staged_pages, 0);
    EXPECT_EQ(plan.shape.resident_pages, 0);
  }
}

}  // namespace
}  // namespace tiercel
