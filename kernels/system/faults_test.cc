#include "kernels/system/faults.h"

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace tiercel::faults_test {
namespace {

constexpr Operation kWrite = {.of = Callee::kDisk, .call = "write"};

TEST(FaultsTest, WithoutAFaultAnOperationGoesOn) {
  EXPECT_EQ(FaultAt(kWrite), 0);
  {
    const Faults faults(Callee::kDisk, [](const Operation&) { return 5; });
  }
  EXPECT_EQ(FaultAt(kWrite), 0);
}

TEST(FaultsTest, AFaultIsAskedForItsCalleeAlone) {
  std::vector<std::string> asked;
  const Faults faults(Callee::kDisk, [&](const Operation& operation) {
    asked.emplace_back(operation.call);
    return operation.bytes > 10 ? 28 : 0;
  });
  EXPECT_EQ(FaultAt({.of = Callee::kLink, .call = "copy", .bytes = 11}), 0);
  EXPECT_EQ(FaultAt({.of = Callee::kDisk, .call = "write", .bytes = 10}), 0);
  EXPECT_EQ(FaultAt({.of = Callee::kDisk, .call = "read", .bytes = 11}), 28);
  EXPECT_EQ(asked, (std::vector<std::string>{"write", "read"}));
}

TEST(FaultsTest, TheOlderAnswersFirst) {
  int first = 0;
  int asked = 0;
  const Faults older(Callee::kDisk, [&](const Operation&) { return first; });
  const Faults newer(Callee::kDisk, [&](const Operation&) {
    ++asked;
    return 7;
  });
  EXPECT_EQ(FaultAt(kWrite), 7);
  first = 3;
  EXPECT_EQ(FaultAt(kWrite), 3);
  EXPECT_EQ(asked, 1);
}

// A test's function may name what the test owns.
TEST(FaultsTest, ItEndsOnceNoThreadIsInIt) {
  struct {
    std::atomic<bool> entered = false;
    std::atomic<bool> leaves = false;
    std::atomic<bool> left = false;
  } own;
  std::optional<Faults> faults;
  faults.emplace(Callee::kDisk, [&own](const Operation&) {
    own.entered = true;
    while (!own.leaves) std::this_thread::yield();
    own.left = true;
    return 1;
  });
  std::thread writes([] { EXPECT_EQ(FaultAt(kWrite), 1); });
  while (!own.entered) std::this_thread::yield();
  std::thread opens([&own] {
    for (int i = 0; i < 100; ++i) std::this_thread::yield();
    own.leaves = true;
  });
  faults.reset();
  EXPECT_TRUE(own.left);
  writes.join();
  opens.join();
}

// Returns the numbers of the calls, from 1 to 9, that fail.
std::vector<int> Failed(FailAt& fails) {
  std::vector<int> failed;
  for (int i = 1; i < 10; ++i) {
    if (fails()) failed.push_back(i);
  }
  return failed;
}

TEST(FailAtTest, TheNthAndSomeAfterItFail) {
  FailAt fails;
  EXPECT_EQ(Failed(fails), std::vector<int>{});
  EXPECT_FALSE(fails.happened());
  fails.Arm(3);
  EXPECT_EQ(Failed(fails), std::vector<int>{3});
  EXPECT_TRUE(fails.happened());
  EXPECT_EQ(Failed(fails), std::vector<int>{});  // it is past
  fails.Arm(1, 2);
  EXPECT_EQ(Failed(fails), (std::vector<int>{1, 2}));
  fails.Arm(8, FailAt::kAll);
  EXPECT_EQ(Failed(fails), (std::vector<int>{8, 9}));
  fails.Arm(11);
  EXPECT_FALSE(fails.happened());
  EXPECT_EQ(Failed(fails), std::vector<int>{});
  fails.Disarm();
  EXPECT_EQ(Failed(fails), std::vector<int>{});
  EXPECT_FALSE(fails.happened());
}

TEST(FailingCallTest, CountsOneCallOfOneCallee) {
  FailingCall write(Callee::kDisk, "write", /*error=*/28);
  EXPECT_EQ(FaultAt(kWrite), 0);
  write.Arm(2);
  EXPECT_EQ(FaultAt({.of = Callee::kDisk, .call = "read"}), 0);
  EXPECT_EQ(FaultAt(kWrite), 0);
  EXPECT_EQ(FaultAt({.of = Callee::kNccl, .call = "write"}), 0);
  EXPECT_EQ(FaultAt(kWrite), 28);
  EXPECT_TRUE(write.happened());
  EXPECT_EQ(FaultAt(kWrite), 0);
}

}  // namespace
}  // namespace tiercel::faults_test
