#include "offload/ranks/rank_group.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

std::unique_ptr<RankGroup> GroupOf(int ranks) {
  auto group = RankGroup::Create(ranks);
  EXPECT_TRUE(group.ok()) << group.status();
  return *std::move(group);
}

void Dawdle(int rank, int of) {
  if (rank == of) std::this_thread::sleep_for(std::chrono::milliseconds(3));
}

TEST(RankGroupTest, EveryRankDoesItsPart) {
  for (const int ranks : {1, 2, 3, 5}) {
    const auto group = GroupOf(ranks);
    EXPECT_EQ(group->ranks(), ranks);
    for (int call = 0; call < 200; ++call) {
      std::vector<int> done(static_cast<size_t>(ranks), 0);
      ASSERT_TRUE(group
                      ->Run([&](int rank) {
                        ++done[static_cast<size_t>(rank)];
                        return absl::OkStatus();
                      })
                      .ok());
      EXPECT_EQ(done, std::vector<int>(static_cast<size_t>(ranks), 1));
    }
  }
}

TEST(RankGroupTest, RankZeroIsTheCaller) {
  const auto group = GroupOf(3);
  const auto caller = std::this_thread::get_id();
  ASSERT_TRUE(group
                  ->Run([&](int rank) {
                    EXPECT_EQ(std::this_thread::get_id() == caller, rank == 0);
                    return absl::OkStatus();
                  })
                  .ok());
}

// All ranks see after a meeting what each wrote before it, whichever is late.
TEST(RankGroupTest, AMeetingWaitsForAll) {
  constexpr int kRanks = 3;
  const auto group = GroupOf(kRanks);
  for (int late = 0; late < kRanks; ++late) {
    std::vector<int> written(kRanks, 0);
    const absl::Status status = group->Run([&](int rank) -> absl::Status {
      for (int round = 1; round <= 50; ++round) {
        if (round % 25 == 0) Dawdle(rank, late);
        written[static_cast<size_t>(rank)] = round;
        if (absl::Status s = group->Meet(rank); !s.ok()) return s;
        for (const int seen : written) {
          if (seen != round) return InternalError("early", "too early");
        }
        // No rank goes on before all have looked.
        if (absl::Status s = group->Meet(rank); !s.ok()) return s;
      }
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST(RankGroupTest, AMeetingGivesAllTheSameAnswer) {
  constexpr int kRanks = 4;
  const auto group = GroupOf(kRanks);
  std::vector<absl::Status> heard(kRanks);
  const absl::Status status = group->Run([&](int rank) {
    const absl::Status mine =
        rank == 0 ? absl::OkStatus()
                  : IoError("of_rank", std::to_string(rank).c_str());
    heard[static_cast<size_t>(rank)] = group->Meet(rank, mine);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  for (const absl::Status& answer : heard) {
    EXPECT_EQ(answer.message(), "1");
    EXPECT_EQ(CodeOf(answer), "of_rank");
  }
}

// A rank that fails, or throws, between any two meetings releases the others;
// its error is the call's, and the next call starts afresh.
TEST(RankGroupTest, WhoFailsSetsTheOthersFree) {
  constexpr int kRanks = 3;
  constexpr int kMeetings = 4;
  const auto group = GroupOf(kRanks);
  for (const bool throws : {false, true}) {
    for (int fails = throws ? 1 : 0; fails < kRanks; ++fails) {
      for (int at = 0; at <= kMeetings; ++at) {
        std::vector<absl::Status> heard(kRanks);
        const absl::Status status = group->Run([&](int rank) -> absl::Status {
          for (int i = 0; i <= kMeetings; ++i) {
            if (rank == fails && i == at) {
              Dawdle(at % 2, 0);
              if (throws) throw std::bad_alloc();
              return DeviceError("copy_failed", "it broke");
            }
            if (i == kMeetings) break;
            absl::Status& last = heard[static_cast<size_t>(rank)];
            last = group->Meet(rank);
            if (!last.ok()) return last;
          }
          return absl::OkStatus();
        });
        EXPECT_EQ(CodeOf(status), throws ? "out_of_memory" : "copy_failed");
        for (int rank = 0; rank < kRanks; ++rank) {
          const absl::Status& last = heard[static_cast<size_t>(rank)];
          const bool waited = rank != fails && at < kMeetings;
          EXPECT_EQ(CodeOf(last), waited ? "rank_failed" : CodeOf({}))
              << rank << " at " << at;
        }
      }
    }
  }
}

TEST(RankGroupTest, WhatRankZeroThrowsIsTheCallers) {
  const auto group = GroupOf(2);
  EXPECT_THROW((void)group->Run([&](int rank) -> absl::Status {
    if (rank == 0) throw std::runtime_error("a callback's");
    return group->Meet(rank);
  }),
               std::runtime_error);
  EXPECT_TRUE(group->Run([&](int rank) { return group->Meet(rank); }).ok());
}

TEST(RankGroupTest, TheLowestRanksErrorCounts) {
  const auto group = GroupOf(4);
  const absl::Status status = group->Run([](int rank) {
    Dawdle(rank, 1);
    return rank == 0 ? absl::OkStatus()
                     : IoError("of_rank", std::to_string(rank).c_str());
  });
  EXPECT_EQ(status.message(), "1");
}

// Each work has the error of the lowest rank that failed in it, on all ranks.
TEST(RankGroupTest, EveryWorkIsMetOverOnItsOwn) {
  constexpr int kRanks = 3;
  const auto group = GroupOf(kRanks);
  const absl::Status status = group->Run([&](int rank) -> absl::Status {
    for (int round = 0; round < 100; ++round) {
      std::vector<absl::Status> each(4);
      if (rank == round % kRanks) each[1] = MemoryError("one", "");
      if (rank > 0) each[2] = UsageError(rank == 1 ? "first" : "second", "");
      Dawdle(rank, round % kRanks);
      absl::Status all = group->MeetOver(rank, absl::MakeSpan(each));
      EXPECT_TRUE(all.ok()) << all;
      EXPECT_TRUE(each[0].ok() && each[3].ok());
      EXPECT_EQ(CodeOf(each[1]), "one");
      EXPECT_EQ(CodeOf(each[2]), "first");
      // A meeting of another kind between two of these.
      const bool meets = round % 2 == 0;
      EXPECT_TRUE(!meets || group->Meet(rank).ok());
      each[0] = UsageError("own", "");
      all = group->MeetOver(rank, absl::MakeSpan(each),
                            rank == 2 ? CancelledError() : absl::OkStatus());
      EXPECT_EQ(ClassOf(all), ErrorClass::kCancelled);
      EXPECT_EQ(CodeOf(each[0]), "own");
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace tiercel
