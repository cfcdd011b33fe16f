#include "offload/ranks/nccl_gather.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/executor/hosted_stream.h"
#include "kernels/system/faults.h"
#include "kernels/system/signals_for_test.h"
#include "lib/status/error.h"
#include "offload/ranks/nccl_for_test.h"
#include "offload/ranks/no_hang_for_test.h"

namespace tiercel {
namespace {

using testing::HasSubstr;

// Ranks on hosted devices, none of which can touch another's memory.
class NcclGatherTest : public ::testing::Test {
 protected:
  static constexpr int kRanks = 3;
  static constexpr int64_t kStride = 50;  // more than the 41 columns
  static constexpr int kGathers = 4;

  NcclGatherTest() : group_(*RankGroup::Create(kRanks)) {
    for (int rank = 0; rank < kRanks; ++rank) {
      streams_.push_back(MakeHostedStream(Order::kMixed, rank));
      queues_.push_back(streams_.back().get());
    }
    EXPECT_TRUE(group_
                    ->Run([this](int rank) {
                      threads_[static_cast<size_t>(rank)] =
                          std::this_thread::get_id();
                      return absl::OkStatus();
                    })
                    .ok());
  }
  ~NcclGatherTest() override { RestoreSimDevices(); }

  absl::StatusOr<std::unique_ptr<NcclGather>> Make() {
    return NcclGather::Create(*group_, FakeNccl::Functions(), queues_);
  }

  template <typename T>
  static T Value(int gather, int64_t row, int64_t column) {
    return static_cast<T>((gather * 100 + row) * 100 + column);
  }

  // Does several gathers of a rank, with its own columns in place or apart.
  // `*right` becomes false if one is wrong. `before` is called before each, and
  // may end the part with an error.
  template <typename T>
  absl::Status GatherSome(
      Gather& gather, int rank, int64_t rows, bool apart,
      const std::function<absl::Status(int rank, int at)>& before,
      std::vector<DeviceArray<T>>* kept, bool* right) {
    Stream& stream = *queues_[static_cast<size_t>(rank)];
    const Columns mine = columns_[static_cast<size_t>(rank)];
    const int64_t width = mine.size();
    for (int i = 0; i < kGathers; ++i) {
      std::vector<T> all(static_cast<size_t>(rows * kStride), T{77});
      std::vector<T> own(static_cast<size_t>(rows * width));
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t c = 0; c < width; ++c) {
          const T value = Value<T>(i, row, mine.begin + c);
          own[static_cast<size_t>(row * width + c)] = value;
          if (apart) continue;
          all[static_cast<size_t>(row * kStride + mine.begin + c)] = value;
        }
      }
      // The arrays live to the end of the run.
      for (const std::vector<T>* array : {&all, &own}) {
        auto created = DeviceArray<T>::Create(
            stream.memory(), static_cast<int64_t>(array->size()), "matrix");
        if (!created.ok()) return created.status();
        kept->push_back(*std::move(created));
      }
      DeviceArray<T>& on_gpu = kept->end()[-2];
      DeviceArray<T>& own_on_gpu = kept->back();
      for (const absl::Status& copied :
           {stream.Copy(on_gpu.data(), all.data(), all.size() * sizeof(T)),
            stream.Copy(own_on_gpu.data(), own.data(),
                        own.size() * sizeof(T))}) {
        if (!copied.ok()) return copied;
      }
      if (absl::Status s = before(rank, i); !s.ok()) return s;
      if (absl::Status s = gather.All(
              stream, rank,
              {.columns = columns_,
               .rows = rows,
               .own = apart ? own_on_gpu.data() : on_gpu.data() + mine.begin,
               .own_stride = apart ? width : kStride,
               .all = on_gpu.data(),
               .all_stride = kStride,
               .element_bytes = sizeof(T)});
          !s.ok()) {
        return s;
      }
      if (absl::Status s = ReadBack(stream, on_gpu, &all); !s.ok()) return s;
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t c = 0; c < kStride; ++c) {
          const T expected =
              c < columns_.back().end ? Value<T>(i, row, c) : T{77};
          *right =
              *right && all[static_cast<size_t>(row * kStride + c)] == expected;
        }
      }
    }
    return absl::OkStatus();
  }

  template <typename T = float>
  absl::Status GatherAll(
      Gather& gather, int64_t rows, bool apart,
      const std::function<absl::Status(int rank, int at)>& before =
          [](int, int) { return absl::OkStatus(); }) {
    std::vector<std::vector<DeviceArray<T>>> kept(kRanks);
    return gather.Run([&](int rank) -> absl::Status {
      const auto at = static_cast<size_t>(rank);
      bool right = true;
      if (absl::Status s = GatherSome<T>(gather, rank, rows, apart, before,
                                         &kept[at], &right);
          !s.ok()) {
        return s;
      }
      // Columns that never came are an error here at the latest.
      if (absl::Status s = gather.Finish(*queues_[at], rank); !s.ok()) return s;
      return right ? absl::OkStatus()
                   : InternalError("wrong", "another number");
    });
  }

  const NoHang no_hang_;
  // Returns true on a rank's thread, false on the watch thread, which may be
  // late.
  bool IsRank() const {
    return std::find(threads_.begin(), threads_.end(),
                     std::this_thread::get_id()) != threads_.end();
  }

  FakeNccl fake_;
  std::vector<std::thread::id> threads_ =
      std::vector<std::thread::id>(kRanks);  // [rank]
  const std::unique_ptr<RankGroup> group_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<Stream*> queues_;
  // They are uneven, and one rank has none.
  const std::vector<Columns> columns_ = {{0, 16}, {16, 16}, {16, 41}};
};

TEST_F(NcclGatherTest, EveryRankHasAll) {
  {
    const auto gather = *Make();
    uint64_t rows_gathered = 0;
    for (const bool apart : {false, true}) {
      for (const int64_t rows : {0, 1, 3, 70}) {
        const absl::Status status = GatherAll(*gather, rows, apart);
        EXPECT_TRUE(status.ok()) << status << ", rows " << rows;
        rows_gathered += static_cast<uint64_t>(rows * kGathers);
      }
    }
    EXPECT_EQ(gather->received(0), rows_gathered * 25 * sizeof(float));
    EXPECT_EQ(gather->received(1), rows_gathered * 41 * sizeof(float));
    EXPECT_EQ(gather->received(2), rows_gathered * 16 * sizeof(float));
    EXPECT_TRUE(GatherAll<uint16_t>(*gather, 3, /*apart=*/true).ok());
    EXPECT_TRUE(GatherAll<uint8_t>(*gather, 2, /*apart=*/false).ok());
    EXPECT_EQ(fake_.calls("create_all"), 1);
    EXPECT_EQ(fake_.calls("abort"), 0);
    EXPECT_EQ(fake_.alive(), kRanks);
  }
  EXPECT_EQ(fake_.alive(), 0);
}

// A rank makes one group of calls a gather, with a send to and a receive from
// each other rank, none for empty columns: ranks 0 and 2 send theirs to two
// each.
TEST_F(NcclGatherTest, AGatherIsOneGroupOfEachRank) {
  const auto gather = *Make();
  const int groups = fake_.calls("group_end");
  const int sends = fake_.calls("send");
  const int receipts = fake_.calls("receive");
  EXPECT_EQ(sends, kRanks * (kRanks - 1));  // they were introduced
  EXPECT_TRUE(GatherAll(*gather, 3, /*apart=*/false).ok());
  EXPECT_EQ(fake_.calls("group_end") - groups, kGathers * kRanks);
  EXPECT_EQ(fake_.calls("send") - sends, kGathers * 4);
  EXPECT_EQ(fake_.calls("receive") - receipts, kGathers * 4);
  // To gather no rows, nothing is called.
  EXPECT_TRUE(GatherAll(*gather, 0, /*apart=*/false).ok());
  EXPECT_EQ(fake_.calls("group_end") - groups, kGathers * kRanks);
}

TEST_F(NcclGatherTest, WhoIsLateIsAwaited) {
  const auto gather = *Make();
  for (const std::string_view call : {"send", "group_end"}) {
    const Faults faults(Callee::kNccl, [call](const Operation& asked) {
      if (asked.call == call && asked.device == 2) {
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
      }
      return 0;
    });
    const absl::Status status = GatherAll(*gather, 2, /*apart=*/false);
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(fake_.calls("abort"), 0);
}

// A failure of any call, of any rank, at any time is one error; no rank hangs,
// and the next run is right, over communicators that are made anew.
TEST_F(NcclGatherTest, ACallThatFailsFailsOneRun) {
  for (const std::string_view call :
       {"async_error", "group_start", "send", "receive", "group_end"}) {
    int failed = 0;
    for (int at = 0;; at = at + 1 + at / 2) {
      const auto gather = *Make();
      std::atomic<int> left = at;
      std::optional<Faults> faults;
      faults.emplace(Callee::kNccl, [&, call](const Operation& asked) {
        return asked.call == call && IsRank() && left-- == 0
                   ? FakeNccl::kRefused
                   : 0;
      });
      const absl::Status status = GatherAll(*gather, 3, /*apart=*/true);
      faults.reset();
      if (left >= 0) {
        EXPECT_TRUE(status.ok()) << status;
        break;
      }
      ++failed;
      EXPECT_EQ(CodeOf(status), "gather_failed") << call << " " << at;
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr("ended with error 1, unhandled cuda error"));
      EXPECT_EQ(fake_.alive(), 0);
      const absl::Status next = GatherAll(*gather, 3, /*apart=*/true);
      EXPECT_TRUE(next.ok()) << next;
      EXPECT_EQ(fake_.alive(), kRanks);
    }
    EXPECT_GT(failed, 3) << call;
  }
}

// A message is lost while a device waits for it: the library knows, and the
// watch thread asks it.
TEST_F(NcclGatherTest, WhatIsLostOnTheWayIsAnError) {
  const auto gather = *Make();
  for (const int at : {0, 1, 5, 7}) {
    std::atomic<int> left = at;
    std::optional<Faults> faults;
    faults.emplace(Callee::kNccl, [&](const Operation& asked) {
      return asked.call == "deliver" && asked.device == 2 && asked.peer == 0 &&
             left-- == 0;
    });
    const absl::Status status = GatherAll(*gather, 2, /*apart=*/false);
    faults.reset();
    EXPECT_EQ(status.ok(), at >= kGathers) << at << status;
    if (!status.ok()) {
      EXPECT_EQ(CodeOf(status), "gather_failed") << status;
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr("rank 0's work ended with error 6"));
    }
    const absl::Status next = GatherAll(*gather, 2, /*apart=*/false);
    EXPECT_TRUE(next.ok()) << next;
  }
}

// The watch thread may abort the communicators that it polls: once a run is
// over these would be the next run's, whose devices would wait for ever.
TEST_F(NcclGatherTest, WhoLooksIsDoneWhenTheRunIs) {
  const auto gather = *Make();
  std::atomic<bool> looks = false;
  const Faults faults(Callee::kNccl, [&](const Operation& asked) {
    if (asked.call != "async_error" || IsRank()) return 0;
    looks = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    looks = false;
    return 0;
  });
  const absl::Status status = gather->Run([&](int) {
    while (!looks) std::this_thread::yield();
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_FALSE(looks);
}

// A rank ends before a gather, or its device is lost after one: the others go
// on, and the call's error is that of the rank.
TEST_F(NcclGatherTest, WhoDiesSetsTheOthersFree) {
  const auto gather = *Make();
  for (int dies = 0; dies < kRanks; ++dies) {
    for (int at = 0; at < kGathers; ++at) {
      const absl::Status status = GatherAll(
          *gather, 3, /*apart=*/false, [&](int rank, int i) -> absl::Status {
            if (rank != dies || i != at) return absl::OkStatus();
            return DeviceError("copy_failed", "it broke");
          });
      EXPECT_EQ(CodeOf(status), "copy_failed") << status;
      EXPECT_TRUE(GatherAll(*gather, 3, /*apart=*/false).ok());
    }
    for (int at = 0; at < 2 * kGathers; ++at) {
      std::atomic<int> left = at;
      SimFaults faults(
          [&](std::string_view call) {
            return call == "wait" && left-- == 0 ? kCudaIllegalAddress : 0;
          },
          dies);
      const absl::Status status = GatherAll(*gather, 3, /*apart=*/false);
      faults.End();
      EXPECT_EQ(status.ok(), left >= 0) << at;
      if (!status.ok()) {
        EXPECT_EQ(CodeOf(status), "device_lost") << status;
      }
      const absl::Status next = GatherAll(*gather, 3, /*apart=*/false);
      EXPECT_TRUE(next.ok()) << next;
    }
  }
}

TEST_F(NcclGatherTest, WhoThrowsSetsTheOthersFree) {
  const auto gather = *Make();
  for (int throws = 1; throws < kRanks; ++throws) {
    // It throws after the last gather, where no other rank hears of it.
    std::vector<std::vector<DeviceArray<float>>> kept(kRanks);
    const absl::Status status = gather->Run([&](int rank) -> absl::Status {
      const auto at = static_cast<size_t>(rank);
      bool right = true;
      const absl::Status gathered = GatherSome<float>(
          *gather, rank, 3, /*apart=*/false,
          [](int, int) { return absl::OkStatus(); }, &kept[at], &right);
      if (rank == throws) throw std::bad_alloc();
      return gathered;
    });
    EXPECT_EQ(CodeOf(status), "out_of_memory") << status;
    EXPECT_EQ(fake_.alive(), 0);
    EXPECT_TRUE(GatherAll(*gather, 3, /*apart=*/false).ok());
  }
}

// A part ends only when its device is done: an error of the device is an error
// of the call.
TEST_F(NcclGatherTest, APartEndsWithItsDevice) {
  const auto gather = *Make();
  for (int dies = 0; dies < kRanks; ++dies) {
    std::vector<DeviceArray<float>> all;
    for (Stream* queue : queues_) {
      all.push_back(
          *DeviceArray<float>::Create(queue->memory(), kStride, "all"));
    }
    SimFaults faults(
        [](std::string_view call) {
          return call == "wait" ? kCudaIllegalAddress : 0;
        },
        dies);
    const absl::Status status = gather->Run([&](int rank) -> absl::Status {
      const auto at = static_cast<size_t>(rank);
      const DevicePtr<float> own = all[at].data() + columns_[at].begin;
      if (absl::Status s = gather->All(*queues_[at], rank,
                                       {.columns = columns_,
                                        .rows = 1,
                                        .own = own,
                                        .own_stride = kStride,
                                        .all = all[at].data(),
                                        .all_stride = kStride});
          !s.ok()) {
        return s;
      }
      return gather->Finish(*queues_[at], rank);
    });
    faults.End();
    EXPECT_EQ(CodeOf(status), "device_lost") << status;
  }
}

// A rank that offers less than the others need never enters the library, where
// its receivers would wait for ever.
TEST_F(NcclGatherTest, WhoSendsTooLittleIsTold) {
  const auto gather = *Make();
  for (int rank = 0; rank < kRanks; ++rank) {
    for (const bool fewer_rows : {true, false}) {
      const int groups = fake_.calls("group_start");
      std::vector<absl::Status> heard(kRanks);
      std::vector<Columns> less = columns_;
      --less.back().end;
      const absl::Status status = gather->Run([&](int own) {
        auto all = *DeviceArray<float>::Create(
            queues_[static_cast<size_t>(own)]->memory(), 4 * kStride, "all");
        const bool at_fault = own == rank;
        GatherParams p = {
            .columns = columns_,
            .rows = at_fault && fewer_rows ? 3 : 4,
            .own = all.data() + columns_[static_cast<size_t>(own)].begin,
            .own_stride = kStride,
            .all = all.data(),
            .all_stride = kStride};
        if (at_fault && !fewer_rows) p.columns = less;
        absl::Status& last = heard[static_cast<size_t>(own)];
        last = gather->All(*queues_[static_cast<size_t>(own)], own, p);
        return last;
      });
      EXPECT_EQ(CodeOf(status), "gather_failed") << status;
      // Each rank sees the error.
      for (const absl::Status& one : heard) {
        EXPECT_EQ(CodeOf(one), "gather_failed") << one;
      }
      EXPECT_EQ(fake_.calls("group_start"), groups);
      EXPECT_TRUE(GatherAll(*gather, 3, /*apart=*/false).ok());
    }
  }
}

// After a cancellation no rank is in the library: the communicators stay.
TEST_F(NcclGatherTest, WhatIsCancelledBreaksNothing) {
  const auto gather = *Make();
  // One rank is cancelled and leaves; the others wait for it in vain.
  for (int leaves = 0; leaves < kRanks; ++leaves) {
    for (int when = 0; when < kGathers; ++when) {
      const absl::Status status =
          GatherAll(*gather, 3, /*apart=*/false, [&](int rank, int at) {
            return rank == leaves && at == when ? CancelledError()
                                                : absl::OkStatus();
          });
      EXPECT_EQ(ClassOf(status), ErrorClass::kCancelled) << status;
      EXPECT_TRUE(GatherAll(*gather, 3, /*apart=*/false).ok());
    }
  }
  // All ranks are cancelled, and leave at the same place.
  const absl::Status status =
      GatherAll(*gather, 3, /*apart=*/false, [&](int rank, int at) {
        return group_->Meet(
            rank, rank == 0 && at == 2 ? CancelledError() : absl::OkStatus());
      });
  EXPECT_EQ(ClassOf(status), ErrorClass::kCancelled);
  EXPECT_TRUE(GatherAll(*gather, 3, /*apart=*/false).ok());
  EXPECT_EQ(fake_.calls("create_all"), 1);
  EXPECT_EQ(fake_.calls("abort"), 0);
}

TEST_F(NcclGatherTest, WhoCannotBeConnectedIsAnError) {
  for (const char* call :
       {"create_all", "group_start", "send", "receive", "group_end"}) {
    FailingCall refused(Callee::kNccl, call, FakeNccl::kRefused);
    refused.Arm(1, FailAt::kAll);
    EXPECT_EQ(CodeOf(Make().status()), "gather_failed") << call;
    EXPECT_EQ(fake_.alive(), 0) << call;
    refused.Disarm();
    // A run that must connect them anew fails too, and the next one succeeds.
    const auto gather = *Make();
    const auto dies = [](int rank, int) {
      return rank == 1 ? DeviceError("copy_failed", "it broke")
                       : absl::OkStatus();
    };
    EXPECT_EQ(CodeOf(GatherAll(*gather, 3, /*apart=*/false, dies)),
              "copy_failed");
    refused.Arm(1, FailAt::kAll);
    EXPECT_EQ(CodeOf(GatherAll(*gather, 3, /*apart=*/false)), "gather_failed")
        << call;
    refused.Disarm();
    EXPECT_TRUE(GatherAll(*gather, 3, /*apart=*/false).ok()) << call;
  }
  // A message that introduces ranks is lost, and the watch thread sees it.
  {
    const Faults faults(Callee::kNccl, [](const Operation& asked) {
      return asked.call == "deliver" && asked.device == 1;
    });
    EXPECT_EQ(CodeOf(Make().status()), "gather_failed");
    EXPECT_EQ(fake_.alive(), 0);
  }
  fake_.version = 22000;
  EXPECT_EQ(CodeOf(Make().status()), "no_library");
}

TEST_F(NcclGatherTest, ThreadsOfTheLibraryTakeNoSignals) {
  bool take = true;
  const Faults faults(Callee::kNccl, [&take](const Operation& asked) {
    if (asked.call == "create_all") take = TakesSignals();
    return 0;
  });
  EXPECT_TRUE(Make().ok());
  EXPECT_FALSE(take);
  EXPECT_TRUE(TakesSignals());
}

// Copies between the devices gather the same where there is no library.
TEST_F(NcclGatherTest, CopiesGatherTheSame) {
  InProcessGather gather(*group_);
  for (const int64_t rows : {0, 1, 3}) {
    const absl::Status status = GatherAll(gather, rows, /*apart=*/true);
    EXPECT_TRUE(status.ok()) << status;
  }
  for (int dies = 0; dies < kRanks; ++dies) {
    std::atomic<int> left = 1;
    SimFaults faults(
        [&](std::string_view call) {
          return call == "wait" && left-- == 0 ? kCudaIllegalAddress : 0;
        },
        dies);
    const absl::Status status = GatherAll(gather, 3, /*apart=*/false);
    faults.End();
    EXPECT_EQ(CodeOf(status), "device_lost") << status;
    EXPECT_TRUE(GatherAll(gather, 3, /*apart=*/false).ok());
  }
}

}  // namespace
}  // namespace tiercel
