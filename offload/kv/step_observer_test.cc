// The calls that a KV store makes to its observer.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "offload/kv/in_place_kv.h"
#include "offload/kv/step_spy_for_test.h"

namespace tiercel::step_observer_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr KvLayout kLayout = {DType::kF32, DType::kF32, /*kv_heads=*/1,
                              /*head_dim=*/8};
constexpr int kLayers = 2;
constexpr auto kGoOn = [] { return false; };

class StepObserverTest : public testing::Test {
 protected:
  StepObserverTest() { kv_.Observe(&spy_); }

  absl::Status Begin(int64_t rows, const View& view = View::Full(),
                     bool certain = true) {
    return kv_.BeginStep(rows, Phase::kVerify, view, kGoOn, certain);
  }
  void Layers() {
    for (int layer = 0; layer < kLayers; ++layer) {
      ASSERT_TRUE(kv_.BeginLayer(layer, kGoOn).ok());
      kv_.EndLayer(layer);
    }
  }
  void Step(int64_t rows, const View& view = View::Full()) {
    ASSERT_TRUE(Begin(rows, view).ok());
    Layers();
    ASSERT_TRUE(kv_.Commit(rows, kGoOn).ok());
  }
  static View Window() {
    View view;
    view.recent = 4;
    return view;
  }

  StepSpy spy_;
  InPlaceKv kv_{std::make_shared<PagePool>(kLayout, kLayers, 4), /*begin=*/100};
};

TEST_F(StepObserverTest, SeesAStepFromItsBeginningToItsEnd) {
  ASSERT_TRUE(Begin(5).ok());
  EXPECT_EQ(kv_.Step().seen_by, &spy_);
  Layers();
  EXPECT_THAT(spy_.Seen(), ElementsAre("begin 5 from 100 certain"));
  ASSERT_TRUE(kv_.Commit(5, kGoOn).ok());
  EXPECT_THAT(spy_.Seen(), ElementsAre("commit 105"));
  EXPECT_EQ(kv_.Step().seen_by, nullptr);
  ASSERT_TRUE(Begin(4, View::Full(), /*certain=*/false).ok());
  Layers();
  ASSERT_TRUE(kv_.Commit(3, kGoOn).ok());
  EXPECT_THAT(spy_.Seen(), ElementsAre("begin 4 from 105 open", "commit 108"));
}

TEST_F(StepObserverTest, SeesNoStepUnderAnotherView) {
  Step(2);
  spy_.Seen();
  ASSERT_TRUE(Begin(1, Window()).ok());
  EXPECT_EQ(kv_.Step().seen_by, nullptr);
  kv_.Abandon();
  Step(1, Window());
  EXPECT_THAT(spy_.Seen(), IsEmpty());
  kv_.Truncate(2);
  EXPECT_THAT(spy_.Seen(), ElementsAre("truncate 102"));
}

TEST_F(StepObserverTest, SeesThatAStepNeverWas) {
  ASSERT_TRUE(Begin(3).ok());
  kv_.Abandon();
  EXPECT_EQ(kv_.Step().seen_by, nullptr);
  kv_.Abandon();  // there is no step, so no call
  EXPECT_THAT(spy_.Seen(), ElementsAre("begin 3 from 100 certain", "abandon"));
  // A step that the store refuses is abandoned too.
  View wrong;
  wrong.selected.resize(kLayers + 1);
  EXPECT_FALSE(Begin(3, wrong).ok());
  EXPECT_EQ(kv_.Step().seen_by, nullptr);
}

TEST_F(StepObserverTest, MayRefuseAStep) {
  const absl::Status status =
      kv_.BeginStep(3, Phase::kVerify, View::Full(), [] { return true; });
  EXPECT_EQ(ClassOf(status), ErrorClass::kCancelled);
  EXPECT_EQ(kv_.Step().seen_by, nullptr);
  EXPECT_THAT(spy_.Seen(), IsEmpty());
  Step(3);
  EXPECT_EQ(kv_.end(), 103);
}

// The observer has lost, with the device memory, what it kept of the layers
// before the stop, so the step is no longer certain.
TEST_F(StepObserverTest, SeesTheRestOfAnInterruptedPromptAsOpen) {
  std::vector<std::byte> state(64);
  ASSERT_TRUE(Begin(70).ok());
  ASSERT_TRUE(kv_.BeginLayer(0, kGoOn).ok());
  kv_.EndLayer(0);
  const auto size = static_cast<int64_t>(state.size());
  ASSERT_TRUE(kv_.Suspend(1, 0, InPlace(state.data()), size).ok());
  EXPECT_EQ(kv_.Step().seen_by, nullptr);
  EXPECT_THAT(spy_.Seen(), ElementsAre("begin 70 from 100 certain", "abandon"));
  ASSERT_TRUE(kv_.Resume(InPlace(state.data()), kGoOn).ok());
  EXPECT_EQ(kv_.Step().seen_by, &spy_);
  ASSERT_TRUE(kv_.BeginLayer(1, kGoOn).ok());
  kv_.EndLayer(1);
  ASSERT_TRUE(kv_.Commit(70, kGoOn).ok());
  EXPECT_THAT(spy_.Seen(), ElementsAre("begin 70 from 100 open", "commit 170"));
}

TEST_F(StepObserverTest, SeesNothingOfAPromptUnderAnotherView) {
  std::vector<std::byte> state(64);
  const auto size = static_cast<int64_t>(state.size());
  ASSERT_TRUE(Begin(70, Window()).ok());
  ASSERT_TRUE(kv_.Suspend(0, 0, InPlace(state.data()), size).ok());
  ASSERT_TRUE(kv_.Resume(InPlace(state.data()), kGoOn).ok());
  EXPECT_EQ(kv_.Step().seen_by, nullptr);
  Layers();
  ASSERT_TRUE(kv_.Commit(70, kGoOn).ok());
  EXPECT_THAT(spy_.Seen(), IsEmpty());
}

TEST_F(StepObserverTest, DoesNotFollowAFork) {
  Step(2);
  spy_.Seen();
  const absl::StatusOr<std::unique_ptr<KvStore>> fork = kv_.Fork();
  ASSERT_TRUE(fork.ok());
  ASSERT_TRUE((*fork)->BeginStep(1, Phase::kVerify, View::Full(), kGoOn).ok());
  (*fork)->Abandon();
  (*fork)->Truncate(1);
  EXPECT_THAT(spy_.Seen(), IsEmpty());
}

}  // namespace
}  // namespace tiercel::step_observer_test
