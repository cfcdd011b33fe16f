#include "kernels/system/thread_pool.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/system/signals_for_test.h"
#include "kernels/system/testing.h"

namespace tiercel {
namespace {

// Expects that every index is visited exactly once, by a thread number within
// bounds.
void ExpectCoversOnce(ThreadPool& pool, int64_t n, int64_t grain) {
  std::vector<int> visits(static_cast<size_t>(n), 0);
  std::atomic<bool> bounds_hold = true;
  pool.ParallelFor(n, grain, [&](int64_t begin, int64_t end, int thread) {
    if (thread < 0 || thread >= pool.num_threads() || end - begin > grain) {
      bounds_hold = false;
    }
    for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
  });
  EXPECT_TRUE(bounds_hold);
  EXPECT_EQ(std::count(visits.begin(), visits.end(), 1), n);
}

TEST(ThreadPoolTest, CoversEveryIndexOnce) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (int64_t n : {0, 1, 2, 7, 64, 1000}) {
      for (int64_t grain : {1, 3, 64, 5000}) ExpectCoversOnce(pool, n, grain);
    }
  }
}

TEST(ThreadPoolTest, ManyShortRegionsSeeEachOthersWrites) {
  ThreadPool pool(4);
  std::vector<int64_t> values(16, 0);
  for (int step = 0; step < 20000; ++step) {
    pool.ParallelFor(16, 1, [&](int64_t begin, int64_t, int) {
      const auto i = static_cast<size_t>(begin);
      values[i] = values[(i + 16) % 16] + 1;
    });
  }
  for (int64_t value : values) EXPECT_EQ(value, 20000);
}

// A worker that is late must not run the next region's indices with the last
// region's body, nor be waited for twice.
TEST(ThreadPoolTest, NeighbouringRegionsDoNotMix) {
  ThreadPool pool(8);
  std::vector<int> written(64, -1);
  for (int step = 0; step < (TriesLess() ? 2000 : 20000); ++step) {
    const int64_t n = 2 + step % 63;
    pool.ParallelFor(n, 1, [&written, step](int64_t begin, int64_t, int) {
      written[static_cast<size_t>(begin)] = step;
    });
    const auto of_step = std::count(written.begin(), written.end(), step);
    ASSERT_EQ(of_step, n) << "region " << step;
  }
}

// The region of one caller is over before that of another begins.
TEST(ThreadPoolTest, RegionsOfTwoCallersDoNotOverlap) {
  ThreadPool pool(3);
  for (int round = 0; round < 5; ++round) {
    std::atomic<bool> begun = false;
    std::atomic<int> left = 2;
    std::thread other([&] {
      while (!begun) std::this_thread::yield();
      pool.ParallelFor(2, 1, [&](int64_t, int64_t, int) {
        if (left == 0) return;
        // If a pool mixes regions, this may never end otherwise.
        std::fputs("a region began inside another\n", stderr);
        std::_Exit(1);
      });
    });
    pool.ParallelFor(2, 1, [&](int64_t, int64_t, int) {
      begun = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      --left;
    });
    other.join();
    EXPECT_EQ(left, 0);
  }
}

// Sessions of one machine share its threads, from any thread that calls them.
TEST(ThreadPoolTest, CallersTakeTurns) {
  ThreadPool pool(3);
  const int regions = TriesLess() ? 200 : 2000;
  std::vector<int64_t> sums(4, 0);
  std::vector<std::thread> callers;
  for (int64_t& sum : sums) {
    callers.emplace_back([&pool, &sum, regions] {
      std::vector<int64_t> values(64, 0);
      for (int region = 0; region < regions; ++region) {
        pool.ParallelFor(64, 1, [&values](int64_t begin, int64_t, int) {
          ++values[static_cast<size_t>(begin)];
        });
      }
      sum = std::accumulate(values.begin(), values.end(), int64_t{0});
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (int64_t sum : sums) EXPECT_EQ(sum, 64 * regions);
}

TEST(ThreadPoolTest, WorkersTakeNoSignals) {
  ThreadPool pool(3);
  std::atomic<int> others = 0;
  std::atomic<int> take_signals = 0;
  // Each range waits for the others, so three threads have one each.
  std::atomic<int> begun = 0;
  pool.ParallelFor(3, 1, [&](int64_t, int64_t, int thread) {
    ++begun;
    while (begun < 3) std::this_thread::yield();
    if (thread == 0) return;
    ++others;
    take_signals += TakesSignals();
  });
  EXPECT_EQ(others, 2);
  EXPECT_EQ(take_signals, 0);
}

// So many ranges, each of which waits for the others, need so many threads.
TEST(ThreadPoolTest, AsManyThreadsWorkAsAreUsed) {
  ThreadPool pool(4);
  for (const int used : {4, 1, 3, 2, 4}) {
    pool.Use(used);
    EXPECT_EQ(pool.threads_in_use(), used);
    std::atomic<int> begun = 0;
    std::atomic<int> highest = 0;
    pool.ParallelFor(used, 1, [&](int64_t, int64_t, int thread) {
      if (thread > highest) highest = thread;
      ++begun;
      while (begun < used) std::this_thread::yield();
    });
    EXPECT_EQ(highest, used - 1);
    for (int region = 0; region < 200; ++region) {
      pool.ParallelFor(64, 1, [&](int64_t, int64_t, int thread) {
        if (thread >= used) highest = thread;
      });
    }
    EXPECT_EQ(highest, used - 1);
  }
  pool.Use(0);
  EXPECT_EQ(pool.threads_in_use(), 1);
  pool.Use(5);
  EXPECT_EQ(pool.threads_in_use(), 4);
}

TEST(ThreadPoolTest, TheThreadsInUseMayChangeDuringRegions) {
  for (const int last : {1, 3}) {
    ThreadPool pool(4);
    std::atomic<bool> done = false;
    std::thread other([&] {
      for (int used = 0; !done; used = (used + 1) % 4) pool.Use(used + 1);
      pool.Use(last);
    });
    for (int region = 0; region < (TriesLess() ? 200 : 5000); ++region) {
      ExpectCoversOnce(pool, 64, 1);
    }
    done = true;
    other.join();
    ExpectCoversOnce(pool, 64, 1);
  }
}

TEST(ThreadPoolTest, WakesAfterSleep) {
  ThreadPool pool(3);
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ExpectCoversOnce(pool, 100, 1);
  }
}

}  // namespace
}  // namespace tiercel
