#include "offload/tier/memory_promise.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "offload/tier/page_pool.h"

namespace tiercel {
namespace {

using ::testing::HasSubstr;

// Returns an account of `budget` bytes.
std::shared_ptr<MemoryAccount> AccountOf(int64_t budget) {
  auto self = std::make_shared<std::weak_ptr<MemoryAccount>>();
  auto account = std::make_shared<MemoryAccount>(
      [self, budget] { return budget - self->lock()->promised(); });
  *self = account;
  return account;
}

TEST(MemoryPromiseTest, WhatIsNotWrittenYetIsKnownToTheProcess) {
  const int64_t before = MemoryAccount::Unwritten();
  const auto one = AccountOf(1000);
  const auto other = AccountOf(1000);
  MemoryPromise kv(one, 600);
  MemoryPromise work(other, 100);
  EXPECT_EQ(one->promised(), 600);
  EXPECT_EQ(other->promised(), 100);
  EXPECT_EQ(MemoryAccount::Unwritten() - before, 700);
  kv.NoteWritten(250);
  EXPECT_EQ(one->promised(), 600);
  EXPECT_EQ(MemoryAccount::Unwritten() - before, 450);
  kv.NoteWritten(900);  // more than was promised: unwritten stops at 0
  EXPECT_EQ(MemoryAccount::Unwritten() - before, 100);
  work.Resize(40);
  EXPECT_EQ(other->promised(), 40);
  EXPECT_EQ(MemoryAccount::Unwritten() - before, 40);
  MemoryPromise moved = std::move(kv);
  kv = {};
  EXPECT_EQ(one->promised(), 600);
  moved = {};
  work = {};
  EXPECT_EQ(one->promised(), 0);
  EXPECT_EQ(MemoryAccount::Unwritten(), before);
}

// Bytes of kind kTaken are counted elsewhere: the account does not count them
// as promised.
TEST(MemoryPromiseTest, WhatIsTakenIsCountedOnce) {
  const int64_t before = MemoryAccount::Unwritten();
  const auto account = AccountOf(1000);
  MemoryPromise taken(account, 600, MemoryPromise::Kind::kTaken);
  EXPECT_EQ(account->promised(), 0);
  EXPECT_EQ(MemoryAccount::Unwritten() - before, 600);
  taken.NoteWritten(600);
  EXPECT_EQ(MemoryAccount::Unwritten(), before);
}

TEST(MemoryPromiseTest, GrowsWhereThereIsRoom) {
  const auto account = AccountOf(1000);
  MemoryPromise some(account, 600);
  MemoryPromise more(account, 0);
  EXPECT_TRUE(more.Grow(400, "more").ok());
  const absl::Status status = more.Grow(1, "yet more");
  EXPECT_EQ(CodeOf(status), "out_of_memory");
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(HasSubstr("yet more"), HasSubstr("need 1 bytes"),
                             HasSubstr("0 of")));
  EXPECT_EQ(account->promised(), 1000);
  some = {};
  EXPECT_TRUE(more.Grow(1, "yet more").ok());
  MemoryPromise nobodys;
  EXPECT_TRUE(nobodys.Grow(int64_t{1} << 60, "anything").ok());
}

// A pool asks once for every slot beyond those that it was promised.
TEST(MemoryPromiseTest, APoolAsksForMoreThanItWasPromised) {
  constexpr KvLayout kLayout = {DType::kF16, DType::kF16, 1, 16};
  constexpr int kLayers = 3;
  const int64_t slot_bytes = kLayers * kLayout.PageBytes();
  const int64_t before = MemoryAccount::Unwritten();
  const auto account = AccountOf(5 * slot_bytes);
  PagePool pool(kLayout, kLayers, /*slots_per_segment=*/2);
  pool.Promise(MemoryPromise(account, 3 * slot_bytes), 3);
  int64_t slots[5];
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(account->promised(), std::max(3, i) * slot_bytes);
    slots[i] = *pool.Take();
  }
  EXPECT_EQ(CodeOf(pool.Take().status()), "out_of_memory");
  EXPECT_EQ(pool.slots_in_use(), 5);
  for (const int64_t slot : slots) pool.Release(slot);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(pool.Take().ok());
  EXPECT_EQ(account->promised(), 5 * slot_bytes);
  EXPECT_EQ(MemoryAccount::Unwritten() - before, 5 * slot_bytes);
  pool.NoteWritten();
  EXPECT_EQ(MemoryAccount::Unwritten(), before);
}

}  // namespace
}  // namespace tiercel
