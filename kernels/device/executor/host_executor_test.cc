#include "kernels/device/executor/host_executor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/device_lang.h"

namespace tiercel {
namespace {

using testing::MatchesRegex;

constexpr Order kOrders[] = {Order::kAscending, Order::kDescending,
                             Order::kMixed};

// A kernel whose threads call `body`, and share `Memory`.
template <typename Memory, typename Function>
struct Kernel {
  static constexpr int kMaxThreads = 1024;
  using Shared = Memory;
  const Function* body;
  void operator()(const Thread& t, Shared& shared) const { (*body)(t, shared); }
};

struct Nothing {};

template <typename Memory = Nothing, typename Function>
std::string FaultOf(const LaunchShape& shape, const Function& body,
                    Order order = Order::kAscending) {
  CUstream_st stream{HostExecutor(order)};
  const int error = Launch(&stream, shape, Kernel<Memory, Function>{&body});
  const std::string fault = HostExecutor::TakeFault();
  EXPECT_EQ(error != 0, !fault.empty());
  return fault;
}

struct Floats {
  Array<float, 64> x;
};

// ---- Valid kernels ----

TEST(HostExecutorTest, EveryThreadOfEveryBlockRunsOnceInTheOrderAsked) {
  for (Order order : kOrders) {
    std::vector<int64_t> seen;
    EXPECT_EQ(FaultOf(
                  {.blocks = 3, .threads = 70},
                  [&](const Thread& t, Nothing&) {
                    EXPECT_EQ(t.count, 70);
                    EXPECT_EQ(t.blocks, 3);
                    EXPECT_EQ(t.warp(), t.index / 32);
                    seen.push_back(t.block * 70 + t.index);
                  },
                  order),
              "");
    EXPECT_EQ(std::is_sorted(seen.begin(), seen.end()),
              order == Order::kAscending);
    EXPECT_EQ(std::is_sorted(seen.rbegin(), seen.rend()),
              order == Order::kDescending);
    std::sort(seen.begin(), seen.end());
    for (int64_t i = 0; i < 210; ++i) EXPECT_EQ(seen[i], i);
    EXPECT_EQ(seen.size(), 210u);
  }
}

TEST(HostExecutorTest, WhatWasWrittenBeforeABarrierIsThere) {
  for (Order order : kOrders) {
    EXPECT_EQ(FaultOf<Floats>(
                  {.blocks = 2, .threads = 64},
                  [](const Thread& t, Floats& s) {
                    EXPECT_NE(s.x[t.index], s.x[t.index]);  // NaN
                    s.x[t.index] = static_cast<float>(t.index);
                    Barrier();
                    const float other = s.x[63 - t.index];
                    EXPECT_EQ(other, 63.0f - s.x[t.index]);
                    Barrier();  // all have read
                    s.x[t.index] = 0.0f;
                    WarpBarrier();
                    EXPECT_EQ(s.x[t.index ^ 31], 0.0f);
                  },
                  order),
              "");
  }
}

TEST(HostExecutorTest, LanesExchangeValues) {
  for (Order order : kOrders) {
    EXPECT_EQ(
        FaultOf(
            {.threads = 64},
            [](const Thread& t, Nothing&) {
              const int lane = t.lane();
              EXPECT_EQ(Shuffle(kAllLanes, t.index, 5), t.index - lane + 5);
              EXPECT_EQ(Shuffle(kAllLanes, lane, 3, 8), lane / 8 * 8 + 3);
              EXPECT_EQ(ShuffleDown(kAllLanes, lane, 4, 16),
                        lane % 16 < 12 ? lane + 4 : lane);
              EXPECT_EQ(ShuffleXor(kAllLanes, lane, 6, 8), lane ^ 6);
              EXPECT_EQ(Ballot(kAllLanes, lane % 3 == 0), 0x49249249u);
              // Two halves of a warp meet at two places.
              if (lane < 16) {
                EXPECT_EQ(Ballot(0xffffu, lane == 2), 4u);
              } else {
                EXPECT_EQ(
                    Shuffle(0xffff0000u, 0.5f + static_cast<float>(lane), 20),
                    20.5f);
              }
            },
            order),
        "");
  }
}

TEST(HostExecutorTest, AtomicAddReturnsWhatWasThere) {
  uint32_t sum = 5;
  std::vector<uint32_t> seen;
  EXPECT_EQ(FaultOf({.blocks = 2, .threads = 2},
                    [&](const Thread&, Nothing&) {
                      seen.push_back(AtomicAdd(&sum, 3));
                    }),
            "");
  EXPECT_EQ(sum, 17u);
  EXPECT_THAT(seen, testing::ElementsAre(5, 8, 11, 14));
}

TEST(HostExecutorTest, PacketsAreLoadedAndStored) {
  alignas(16) float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(FaultOf({.threads = 1},
                    [&](const Thread&, Nothing&) {
                      Packet<float> packet = Load16(x + 4);
                      packet[1] = 9;
                      Store16(packet, x);
                    }),
            "");
  EXPECT_THAT(x, testing::ElementsAre(5, 9, 7, 8, 5, 6, 7, 8));
}

// The lanes' words have the layout of the PTX manual.
TEST(HostExecutorTest, MatricesAreMultiplied) {
  int8_t a[16][32], b[8][32];
  for (int i = 0; i < 32; ++i) {
    for (int r = 0; r < 16; ++r) a[r][i] = static_cast<int8_t>(r * 37 + i * 11);
    for (int r = 0; r < 8; ++r) b[r][i] = static_cast<int8_t>(r * 53 - i * 29);
  }
  int32_t out[16][8] = {};
  for (Order order : kOrders) {
    EXPECT_EQ(FaultOf(
                  {.threads = 32},
                  [&](const Thread& t, Nothing&) {
                    const int g = t.lane() / 4, k = t.lane() % 4 * 4;
                    uint32_t left[4], right[2];
                    for (int i = 0; i < 4; ++i) {
                      std::memcpy(&left[i], &a[g + i % 2 * 8][k + i / 2 * 16],
                                  4);
                    }
                    for (int i = 0; i < 2; ++i) {
                      std::memcpy(&right[i], &b[g][k + i * 16], 4);
                    }
                    int32_t sums[4] = {1, 1, 1, 1};
                    MmaS8(sums, left, right);
                    for (int i = 0; i < 4; ++i) {
                      out[g + i / 2 * 8][t.lane() % 4 * 2 + i % 2] = sums[i];
                    }
                  },
                  order),
              "");
    for (int r = 0; r < 16; ++r) {
      for (int c = 0; c < 8; ++c) {
        int32_t sum = 1;
        for (int k = 0; k < 32; ++k) sum += a[r][k] * b[c][k];
        EXPECT_EQ(out[r][c], sum) << r << " " << c;
      }
    }
  }
}

TEST(HostExecutorTest, CopiesArriveAtTheirWait) {
  alignas(16) float from[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  EXPECT_EQ(FaultOf<Floats>({.threads = 1},
                            [&](const Thread&, Floats& s) {
                              for (int i = 0; i < 12; ++i) s.x[i] = 0;
                              for (int i = 0; i < 12; i += 4) {
                                CopyAsync16(&s.x[i], from + i);
                                CopyCommit();
                              }
                              from[3] = 40;  // not read before the wait
                              EXPECT_NE(s.x[0], s.x[0]);
                              CopyWait<2>();
                              EXPECT_EQ(s.x[3], 40);
                              EXPECT_NE(s.x[4], s.x[4]);
                              CopyWait<0>();
                              EXPECT_EQ(s.x[11], 12);
                            }),
            "");
}

// ---- Faults ----

TEST(HostExecutorFaultTest, ALaneLeavesOutABarrier) {
  for (Order order : kOrders) {
    EXPECT_THAT(FaultOf(
                    {.threads = 33},
                    [](const Thread& t, Nothing&) {
                      if (t.index != 32) Barrier();
                    },
                    order),
                MatchesRegex("block 0, deadlock: thread 0 waits in Barrier at "
                             "host_executor_test.cc:[0-9]+, thread 32 has "
                             "ended"));
  }
}

// The body is not inside a macro, where all would be on one line.
TEST(HostExecutorFaultTest, ThreadsWaitAtTwoBarriers) {
  const auto body = [](const Thread& t, Nothing&) {
    if (t.index < 32) {
      Barrier();
    } else {
      Barrier();
    }
  };
  EXPECT_THAT(FaultOf({.threads = 64}, body),
              MatchesRegex("block 0, deadlock: thread 0 waits in Barrier at "
                           "[a-z_]+.cc:[0-9]+, thread 32 waits in Barrier at "
                           "[a-z_]+.cc:[0-9]+"));
}

TEST(HostExecutorFaultTest, LanesPartBeforeAShuffle) {
  EXPECT_THAT(FaultOf({.threads = 32},
                      [](const Thread& t, Nothing&) {
                        if (t.lane() < 30) {
                          ShuffleDown(kAllLanes, 1, 1);
                        } else {
                          Ballot(kAllLanes, true);
                        }
                      }),
              MatchesRegex("block 0, deadlock: thread 0 waits in Shuffle at "
                           "[a-z_]+.cc:[0-9]+ for lanes ffffffff, thread 30 "
                           "waits in Ballot at .* for lanes ffffffff"));
}

TEST(HostExecutorFaultTest, MasksDiffer) {
  EXPECT_THAT(FaultOf({.threads = 32},
                      [](const Thread& t, Nothing&) {
                        Ballot(t.lane() == 7 ? 0x80u : kAllLanes, true);
                        Ballot(t.lane() == 7 ? 0x80u : kAllLanes, true);
                      }),
              MatchesRegex("block 0, deadlock: thread 0 waits in Ballot at .* "
                           "for lanes ffffffff, thread 7 has ended"));
  EXPECT_THAT(FaultOf({.threads = 32},
                      [](const Thread&, Nothing&) { Ballot(0xffu, true); }),
              MatchesRegex("block 0, thread 8: Ballot for lanes ff, its own is "
                           "not among them, at .*"));
  EXPECT_THAT(FaultOf({.threads = 8},
                      [](const Thread&, Nothing&) { Ballot(kAllLanes, true); }),
              MatchesRegex(".*thread 0 waits in Ballot .*, thread 8 is not "
                           "there"));
  EXPECT_THAT(FaultOf({.threads = 32},
                      [](const Thread& t, Nothing&) {
                        if (t.lane() < 8) Shuffle(0xffu, 1, 8);
                      }),
              MatchesRegex("block 0, thread 0: Shuffle from lane 8, not one of "
                           "ff, at .*"));
}

TEST(HostExecutorFaultTest, AWarpWaitsForItsBlockAndTheBlockForTheWarp) {
  EXPECT_THAT(FaultOf({.threads = 64},
                      [](const Thread& t, Nothing&) {
                        if (t.index == 40) Barrier();
                        if (t.warp() == 1) Ballot(kAllLanes, true);
                        if (t.index != 40) Barrier();
                      }),
              MatchesRegex("block 0, deadlock: thread 0 waits in Barrier at "
                           ".*, thread 32 waits in Ballot at .*"));
}

TEST(HostExecutorFaultTest, PastSharedMemory) {
  EXPECT_THAT(FaultOf<Floats>({.threads = 2},
                              [](const Thread& t, Floats& s) {
                                if (t.index == 1) s.x[64] = 0;
                              }),
              "block 0, thread 1: element 64 of an array of 64");
  EXPECT_THAT(FaultOf<Floats>({.threads = 1},
                              [](const Thread&, Floats& s) { s.x[-1] = 0; }),
              "block 0, thread 0: element -1 of an array of 64");
  // An access by a pointer is found too, if the launch has a part of Shared.
  EXPECT_THAT(FaultOf<Floats>({.threads = 2, .shared_bytes = 64},
                              [](const Thread& t, Floats& s) {
                                s.x[15] = 1;
                                volatile float* x = &s.x[0];
                                if (t.index == 1) x[16] = x[15];
                              }),
              "block 0, thread 1: touched byte 64 of shared memory, past its "
              "end");
}

// After a fault the executor works as before.
TEST(HostExecutorFaultTest, IsForgotten) {
  CUstream_st stream{HostExecutor(Order::kAscending)};
  int done = 0;
  const auto fails = [](const Thread& t, Floats& s) {
    Barrier();
    if (t.index == 5) s.x[70] = 1;
    Barrier();
  };
  const auto works = [&](const Thread&, Floats&) {
    Barrier();
    ++done;
  };
  const LaunchShape shape = {.threads = 40};
  EXPECT_NE(Launch(&stream, shape, Kernel<Floats, decltype(fails)>{&fails}), 0);
  EXPECT_EQ(Launch(&stream, shape, Kernel<Floats, decltype(works)>{&works}), 0);
  EXPECT_EQ(done, 40);
  EXPECT_EQ(HostExecutor::TakeFault(), "");
}

TEST(HostExecutorFaultTest, PacketsThatAreNotAligned) {
  alignas(16) float x[16] = {};
  const auto fault = MatchesRegex(
      "block 0, thread 0: a packet 4 past alignment at [a-z_]+.cc:[0-9]+");
  const auto fault_of = [](auto body) {
    return FaultOf<Floats>({.threads = 1},
                           [&](const Thread&, Floats& s) { body(s); });
  };
  EXPECT_THAT(fault_of([&](Floats&) { Load16(x + 1); }), fault);
  EXPECT_THAT(fault_of([&](Floats&) { Store16(Packet<float>(), x + 1); }),
              fault);
  EXPECT_THAT(fault_of([&](Floats& s) { CopyAsync16(&s.x[1], x); }), fault);
  EXPECT_THAT(fault_of([&](Floats& s) { CopyAsync16(&s.x[0], x + 5); }), fault);
}

TEST(HostExecutorFaultTest, CopiesThatNobodyWaitsFor) {
  alignas(16) float x[4] = {};
  EXPECT_EQ(FaultOf<Floats>({.threads = 1},
                            [&](const Thread&, Floats& s) {
                              CopyAsync16(&s.x[0], x);
                              CopyWait<0>();  // its group was not committed
                            }),
            "block 0, thread 0: ended with copies under way");
}

TEST(HostExecutorFaultTest, ShapesThatNoGpuHas) {
  const auto nothing = [](const Thread&, Floats&) {};
  for (const size_t limit : HostExecutor::kSharedLimits) {
    CUstream_st stream{HostExecutor(Order::kAscending, limit)};
    const auto launch = [&](const LaunchShape& shape) {
      return Launch(&stream, shape,
                    Kernel<Floats, decltype(nothing)>{&nothing});
    };
    EXPECT_EQ(launch({.threads = 1, .shared_bytes = limit}), 0);
    EXPECT_NE(launch({.threads = 1, .shared_bytes = limit + 1}), 0);
    EXPECT_NE(launch({.threads = 1025}), 0);
    EXPECT_NE(launch({.threads = 0}), 0);
    EXPECT_NE(launch({.blocks = 0}), 0);
    EXPECT_NE(launch({.blocks = int64_t{1} << 31}), 0);
  }
}

TEST(HostExecutorFaultTest, SaysWhatFailedAndWhere) {
  EXPECT_FALSE(FaultOf<Floats>({.threads = 1}, [](const Thread&, Floats& s) {
                 s.x[64] = 0;
               }).empty());
  CUstream_st stream{HostExecutor(Order::kAscending)};
  const auto body = [](const Thread&, Floats& s) { s.x[64] = 0; };
  const absl::Status status = CudaStatus(
      "Op", Launch(&stream, {}, Kernel<Floats, decltype(body)>{&body}));
  EXPECT_EQ(status.message(),
            "Op: CUDA error 719, block 0, thread 0: element 64 of an array of "
            "64; this process can no longer use the GPU");
}

}  // namespace
}  // namespace tiercel
