#include "runtime/model/workspace_pool.h"

#include <memory>
#include <utility>

#include "gtest/gtest.h"

namespace tiercel {
namespace {

class WorkspacePoolTest : public testing::Test {
 protected:
  static std::shared_ptr<MemoryAccount> Account() {
    return std::make_shared<MemoryAccount>([] { return int64_t{1} << 40; });
  }
  // Takes memory in `workspace`, as a call would.
  void Fill(Workspace& workspace, int64_t floats) {
    workspace.ranks[0].logits =
        *DeviceArray<float>::Create(memory_, floats, "logits");
  }

  HeapMemory memory_;
  const std::shared_ptr<MemoryAccount> device_ = Account();
  const std::shared_ptr<MemoryAccount> host_ = Account();
  WorkspacePool pool_{{device_, nullptr}, host_};
};

TEST_F(WorkspacePoolTest, WhoeverComputesHasTheOne) {
  std::unique_ptr<Workspace> first = pool_.Take();
  ASSERT_EQ(first->ranks.size(), 2u);
  EXPECT_TRUE(pool_.InUse());
  Fill(*first, 1000);
  const DevicePtr<float> logits = first->ranks[0].logits.data();
  pool_.GiveBack(std::move(first));
  EXPECT_FALSE(pool_.InUse());
  EXPECT_EQ(pool_.Take()->ranks[0].logits.data(), logits);
}

TEST_F(WorkspacePoolTest, OfSeveralTheLargestStays) {
  for (const bool larger_first : {false, true}) {
    std::unique_ptr<Workspace> one = pool_.Take();
    std::unique_ptr<Workspace> other = pool_.Take();
    Fill(*one, larger_first ? 2000 : 1000);
    Fill(*other, larger_first ? 1000 : 2000);
    pool_.GiveBack(std::move(one));
    EXPECT_TRUE(pool_.InUse());
    pool_.GiveBack(std::move(other));
    EXPECT_EQ(memory_.used(), AlignedBytes(2000 * sizeof(float)));
  }
}

// The promise is the most that any session needs; memory that is taken is no
// longer promised.
TEST_F(WorkspacePoolTest, WhatIsNotTakenIsPromised) {
  pool_.Promise(0, {.angles = 500, .logits = 4000, .distributions = 70});
  pool_.Promise(0, {.scratch = 100, .logits = 3000, .distributions = 30});
  pool_.Promise(1, {.logits = 4000});
  EXPECT_EQ(pool_.Promised(0).DeviceBytes(), 4600);
  EXPECT_EQ(device_->promised(), 4600);
  EXPECT_EQ(host_->promised(), 70);
  std::unique_ptr<Workspace> taken = pool_.Take();
  Fill(*taken, 1000);
  pool_.GiveBack(std::move(taken));
  EXPECT_EQ(device_->promised(), 4600 - AlignedBytes(4000));
  taken = pool_.Take();
  taken->ranks[0].logits = {};  // its holder keeps that
  pool_.GiveBack(std::move(taken));
  EXPECT_EQ(device_->promised(), 4600);
}

}  // namespace
}  // namespace tiercel
