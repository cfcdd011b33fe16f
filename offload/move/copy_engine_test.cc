#include "offload/move/copy_engine.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/system/clock_for_test.h"
#include "kernels/system/signals_for_test.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

constexpr Direction kUp = Direction::kHostToDevice;
constexpr Direction kDown = Direction::kDeviceToHost;

size_t Index(Phase phase) { return static_cast<size_t>(phase); }

// A link whose copies wait until the test lets them go, or drops them.
class GatedLink final : public Link {
 public:
  absl::StatusOr<Moved> Copy(const Transfer& t, Clock::Time,
                             const std::atomic<bool>& drop) override {
    std::unique_lock<std::mutex> lock(mutex_);
    take_signals = TakesSignals();
    ++begun_;
    changed_.notify_all();
    while (open_ == 0 && !drop.load()) {
      changed_.wait_for(lock, std::chrono::milliseconds(1));
    }
    if (drop.load()) return Moved{0, 0};
    --open_;
    order.push_back(t.offset);
    changed_.notify_all();
    if (t.offset == fail_offset) return DeviceError("copy_failed", "as asked");
    return Moved{t.bytes, 0.5};
  }
  absl::StatusOr<double> Finish() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--good_ends == -1) return DeviceError("device_failed", "as asked");
    return 0.0;
  }
  void Forget(const HostRegion&) override {}
  void Open(int copies) {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ += copies;
    changed_.notify_all();
  }
  // Waits until there have been `copies` copies, and returns the offsets of all
  // so far.
  std::vector<int64_t> OrderOf(size_t copies) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return order.size() >= copies; });
    return order;
  }
  void AwaitBegun(int copies) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return begun_ >= copies; });
  }

  std::vector<int64_t> order;
  int64_t fail_offset = -1;
  int good_ends = 1000;      // calls of Finish before one that fails
  bool take_signals = true;  // set by the thread that made the last copy

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int open_ = 0;
  int begun_ = 0;
};

std::unique_ptr<CopyEngine> Over(std::unique_ptr<Link> link) {
  return *CopyEngine::Create(std::move(link));
}

TEST(CopyEngineTest, ItsThreadTakesNoSignals) {
  auto link = std::make_unique<GatedLink>();
  GatedLink& gate = *link;
  const auto engine = Over(std::move(link));
  gate.Open(1);
  std::byte byte;
  ASSERT_TRUE(engine
                  ->Wait(engine->Submit(Phase::kDraft,
                                        {{kUp, nullptr, 0, InPlace(&byte), 1}}))
                  .ok());
  EXPECT_FALSE(gate.take_signals);
}

TEST(CopyEngineTest, CopiesInOrderAndCountsByPhase) {
  auto link = std::make_unique<GatedLink>();
  GatedLink* const gate = link.get();
  const auto engine = Over(std::move(link));
  const auto a = engine->Submit(
      Phase::kVerify,
      {{kUp, nullptr, 1, nullptr, 10}, {kDown, nullptr, 2, nullptr, 20}});
  const auto b =
      engine->Submit(Phase::kPrefill, {{kUp, nullptr, 3, nullptr, 300}});
  EXPECT_LT(a, b);
  EXPECT_FALSE(engine->Done(a));
  gate->Open(2);
  EXPECT_TRUE(engine->Wait(a).ok());
  EXPECT_TRUE(engine->Done(a));
  EXPECT_FALSE(engine->Done(b));
  gate->Open(1);
  EXPECT_TRUE(engine->Wait(b).ok());
  EXPECT_EQ(gate->order, (std::vector<int64_t>{1, 2, 3}));
  const LinkLedger ledger = engine->ledger();
  EXPECT_EQ(ledger[Index(Phase::kVerify)].h2d_bytes, 10u);
  EXPECT_EQ(ledger[Index(Phase::kVerify)].d2h_bytes, 20u);
  EXPECT_EQ(ledger[Index(Phase::kVerify)].busy_seconds, 1.0);
  EXPECT_EQ(ledger[Index(Phase::kPrefill)].h2d_bytes, 300u);
  EXPECT_EQ(ledger[Index(Phase::kDraft)].h2d_bytes, 0u);
}

TEST(CopyEngineTest, WhatIsUrgentGoesBeforeWhatHasNotBegun) {
  auto link = std::make_unique<GatedLink>();
  GatedLink* const gate = link.get();
  gate->fail_offset = 7;
  const auto engine = Over(std::move(link));
  const auto a =
      engine->Submit(Phase::kVerify, {{kUp, nullptr, 1, nullptr, 1},
                                      {kUp, nullptr, 2, nullptr, 1},
                                      {kUp, nullptr, 3, nullptr, 1}});
  const auto b =
      engine->Submit(Phase::kVerify, {{kUp, nullptr, 4, nullptr, 1}});
  gate->Open(1);
  gate->AwaitBegun(2);
  const auto urgent = [&engine](std::vector<Transfer> transfers) {
    return engine->Submit(Phase::kRefresh, std::move(transfers),
                          CopyEngine::Turn::kUrgent);
  };
  const auto c =
      urgent({{kUp, nullptr, 5, nullptr, 10}, {kUp, nullptr, 6, nullptr, 10}});
  const auto d = urgent({{kUp, nullptr, 7, nullptr, 10}});
  const auto e = urgent({{kUp, nullptr, 8, nullptr, 10}});
  engine->Drop(e);
  gate->Open(4);
  ASSERT_EQ(gate->OrderOf(5), (std::vector<int64_t>{1, 2, 5, 6, 7}));
  EXPECT_TRUE(engine->Wait(c).ok());
  EXPECT_EQ(CodeOf(engine->Wait(d)), "copy_failed");
  EXPECT_TRUE(engine->Wait(e).ok());
  EXPECT_FALSE(engine->Done(a));
  EXPECT_FALSE(engine->Done(b));
  gate->Open(2);
  EXPECT_TRUE(engine->Wait(b).ok());
  EXPECT_TRUE(engine->Done(a));
  EXPECT_EQ(gate->OrderOf(7), (std::vector<int64_t>{1, 2, 5, 6, 7, 3, 4}));
  EXPECT_EQ(engine->ledger()[Index(Phase::kVerify)].h2d_bytes, 4u);
  EXPECT_EQ(engine->ledger()[Index(Phase::kRefresh)].h2d_bytes, 20u);
}

TEST(CopyEngineTest, NothingIsDoneAtOnce) {
  const auto engine = Over(std::make_unique<GatedLink>());
  EXPECT_EQ(engine->Submit(Phase::kVerify, {}), 0u);
  EXPECT_TRUE(engine->Done(0));
  EXPECT_TRUE(engine->Wait(0).ok());
}

TEST(CopyEngineTest, AnErrorIsOfItsTicketAlone) {
  auto link = std::make_unique<GatedLink>();
  GatedLink* const gate = link.get();
  gate->fail_offset = 2;
  const auto engine = Over(std::move(link));
  const auto good =
      engine->Submit(Phase::kVerify, {{kUp, nullptr, 1, nullptr, 1}});
  const auto bad = engine->Submit(
      Phase::kVerify,
      {{kUp, nullptr, 2, nullptr, 10}, {kUp, nullptr, 3, nullptr, 100}});
  const auto after =
      engine->Submit(Phase::kVerify, {{kUp, nullptr, 4, nullptr, 1000}});
  gate->Open(3);
  EXPECT_TRUE(engine->Wait(after).ok());
  EXPECT_TRUE(engine->Wait(good).ok());
  EXPECT_EQ(CodeOf(engine->Wait(bad)), "copy_failed");
  EXPECT_TRUE(engine->Wait(bad).ok());  // the error is returned once
  EXPECT_EQ(gate->order, (std::vector<int64_t>{1, 2, 4}));
  // Bytes that did not move are not counted.
  EXPECT_EQ(engine->ledger()[Index(Phase::kVerify)].h2d_bytes, 1001u);
}

// At the end of an urgent submission the copies of the interrupted one are
// waited for, too, and share its error.
TEST(CopyEngineTest, AnErrorAtTheEndIsOfAllThatHasBegun) {
  auto link = std::make_unique<GatedLink>();
  GatedLink* const gate = link.get();
  gate->good_ends = 0;
  const auto engine = Over(std::move(link));
  const auto begun =
      engine->Submit(Phase::kVerify, {{kUp, nullptr, 1, nullptr, 1},
                                      {kUp, nullptr, 2, nullptr, 1},
                                      {kUp, nullptr, 3, nullptr, 1}});
  const auto after =
      engine->Submit(Phase::kVerify, {{kUp, nullptr, 4, nullptr, 1}});
  gate->Open(1);
  gate->AwaitBegun(2);
  const auto urgent =
      engine->Submit(Phase::kRefresh, {{kUp, nullptr, 5, nullptr, 1}},
                     CopyEngine::Turn::kUrgent);
  gate->Open(3);
  EXPECT_EQ(CodeOf(engine->Wait(urgent)), "device_failed");
  EXPECT_EQ(CodeOf(engine->Wait(begun)), "device_failed");
  EXPECT_TRUE(engine->Wait(after).ok());
  EXPECT_EQ(gate->OrderOf(4), (std::vector<int64_t>{1, 2, 5, 4}));
}

TEST(CopyEngineTest, DroppedIsDoneSoonAndNotCounted) {
  const auto engine = Over(std::make_unique<GatedLink>());
  const auto first =
      engine->Submit(Phase::kDraft, {{kUp, nullptr, 1, nullptr, 10}});
  const auto second =
      engine->Submit(Phase::kDraft, {{kUp, nullptr, 2, nullptr, 20}});
  engine->Drop(second);
  engine->Drop(first);
  EXPECT_TRUE(engine->Wait(second).ok());
  EXPECT_EQ(engine->ledger()[Index(Phase::kDraft)].h2d_bytes, 0u);
}

TEST(CopyEngineTest, WaitingCanBeCancelled) {
  const auto engine = Over(std::make_unique<GatedLink>());
  const auto ticket =
      engine->Submit(Phase::kDraft, {{kUp, nullptr, 1, nullptr, 10}});
  int asked = 0;
  const absl::Status status =
      engine->Wait(ticket, [&asked] { return ++asked == 3; });
  EXPECT_EQ(ClassOf(status), ErrorClass::kCancelled);
  EXPECT_FALSE(engine->Done(ticket));
}  // the engine ends, although the gate stays shut

// A link that finds no memory, in Copy or in Finish.
class StarvedLink final : public Link {
 public:
  explicit StarvedLink(bool copies) : copies_(copies) {}
  absl::StatusOr<Moved> Copy(const Transfer& t, Clock::Time,
                             const std::atomic<bool>&) override {
    if (!copies_) throw std::bad_alloc();
    return Moved{t.bytes, 0};
  }
  absl::StatusOr<double> Finish() override {
    if (copies_) throw std::bad_alloc();
    return 0.0;
  }
  void Forget(const HostRegion&) override {}

 private:
  const bool copies_;
};

TEST(CopyEngineTest, OutlivesALackOfMemory) {
  for (const bool copies : {false, true}) {
    const auto engine = Over(std::make_unique<StarvedLink>(copies));
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(CodeOf(engine->Wait(engine->Submit(
                    Phase::kDraft, {{kUp, nullptr, 1, nullptr, 10}}))),
                "out_of_memory");
    }
  }
}

TEST(JoinedTest, NeighboursOnBothSidesBecomeOne) {
  std::byte bytes_there[100];
  const DevicePtr<std::byte> device = InPlace(bytes_there);
  HostRegion a, b;
  const std::vector<Transfer> joined = Joined({
      {kUp, &a, 0, device, 10},
      {kUp, &a, 10, device + 10, 10},    // joins the one before
      {kUp, &a, 20, device + 30, 10},    // a gap on the device
      {kUp, &a, 40, device + 40, 10},    // a gap on the host
      {kDown, &a, 50, device + 50, 10},  // the other direction
      {kDown, &b, 60, device + 60, 10},  // another region
      {kDown, &b, 70, device + 70, 5},   // joins the one before
  });
  std::vector<int64_t> bytes;
  for (const Transfer& t : joined) bytes.push_back(t.bytes);
  EXPECT_EQ(bytes, (std::vector<int64_t>{20, 10, 10, 10, 15}));
  bytes.clear();
  for (const Transfer& t : Joined({{kUp, &a, 0, device, 10},
                                   {kUp, &a, 10, device + 10, 10},
                                   {kUp, &a, 20, device + 20, 10},
                                   {kUp, &a, 30, device + 30, 30}},
                                  /*most=*/20)) {
    bytes.push_back(t.bytes);
  }
  EXPECT_EQ(bytes, (std::vector<int64_t>{20, 10, 30}));
}

TEST(SimulatedLinkTest, CopiesBothWaysAtItsRate) {
  constexpr int64_t kBytes = 3 << 20;
  constexpr double kRate = 1 << 20;
  HostRegion region = *HostRegion::Reserve(kBytes);
  std::vector<std::byte> out(kBytes), in(kBytes);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<std::byte>(i * 31 % 253);
  }
  ManualClock clock;
  const auto engine = Over(std::make_unique<SimulatedLink>(
      kRate, /*latency=*/0.5, std::make_unique<HostLink>(), clock));
  const Clock::Time start = clock.Now();
  engine->Submit(Phase::kPrefill,
                 {{kDown, &region, 0, InPlace(out.data()), kBytes}});
  const auto up = engine->Submit(
      Phase::kVerify, {{kUp, &region, 0, InPlace(in.data()), 1 << 18},
                       {kUp, &region, 1 << 18, InPlace(in.data()) + (1 << 18),
                        kBytes - (1 << 18)}});
  ASSERT_TRUE(engine->Wait(up).ok());
  EXPECT_EQ(in, out);
  // Each direction takes 3 s, each transfer half a second more, without a gap.
  EXPECT_EQ(SecondsBetween(start, clock.Now()), 2 * 3 + 3 * 0.5);
  EXPECT_EQ(engine->ledger()[Index(Phase::kPrefill)].busy_seconds, 3.5);
  EXPECT_EQ(engine->ledger()[Index(Phase::kVerify)].busy_seconds, 4);

  // Idle time is not counted as busy.
  clock.Pass(100);
  const Clock::Time later = clock.Now();
  ASSERT_TRUE(
      engine
          ->Wait(engine->Submit(
              Phase::kDraft, {{kUp, &region, 0, InPlace(in.data()), 1 << 20}}))
          .ok());
  EXPECT_EQ(SecondsBetween(later, clock.Now()), 1.5);
  EXPECT_EQ(engine->ledger()[Index(Phase::kDraft)].busy_seconds, 1.5);
}

// The lower bound of the time is exact by construction. There is no upper
// bound, as a busy machine may take longer.
TEST(SimulatedLinkTest, IsNeverFasterThanItsRate) {
  constexpr int64_t kBytes = 3 << 20;
  constexpr double kRate = 100e6;
  HostRegion region = *HostRegion::Reserve(kBytes);
  std::vector<std::byte> device(kBytes);
  const auto engine = Over(std::make_unique<SimulatedLink>(kRate, 0.001));
  const Clock::Time start = SteadyClock().Now();
  const auto ticket = engine->Submit(
      Phase::kPrefill, {{kDown, &region, 0, InPlace(device.data()), kBytes},
                        {kUp, &region, 0, InPlace(device.data()), kBytes}});
  ASSERT_TRUE(engine->Wait(ticket).ok());
  EXPECT_GE(SecondsBetween(start, SteadyClock().Now()),
            2 * (kBytes / kRate + 0.001));
}

}  // namespace
}  // namespace tiercel
