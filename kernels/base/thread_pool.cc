#include "kernels/base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <system_error>

namespace tiercel {
namespace {

// About 50 us of waiting at one pause (~40 cycles on Zen 4, ~140 on Intel):
// longer than the serial stretches of a decode step, far shorter than a human
// notices as a busy machine.
constexpr int kSpins = 4000;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  workers_.reserve(static_cast<size_t>(std::max(0, threads - 1)));
  for (int i = 1; i < threads; ++i) {
    try {
      workers_.emplace_back([this, i] { WorkerLoop(i); });
    } catch (const std::system_error&) {
      break;  // the system's limit; fewer threads do the same work
    }
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::ParallelFor(
    int64_t n, int64_t grain,
    absl::FunctionRef<void(int64_t, int64_t, int)> body) {
  if (n <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  if (workers_.empty() || n <= grain) {
    for (int64_t begin = 0; begin < n; begin += grain) {
      body(begin, std::min(n, begin + grain), 0);
    }
    return;
  }
  region_ = {&body, n, grain};
  next_.store(0, std::memory_order_relaxed);
  working_.store(static_cast<uint32_t>(workers_.size()),
                 std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  RunRanges(0);
  // Every worker passes through every region, so that none can read region_
  // while the next one is being written.
  for (int spins = 0;; ++spins) {
    const uint32_t working = working_.load(std::memory_order_acquire);
    if (working == 0) return;
    if (spins < kSpins) {
      Pause();
    } else {
      working_.wait(working, std::memory_order_acquire);
    }
  }
}

void ThreadPool::WorkerLoop(int thread) {
  uint32_t seen = 0;
  while (true) {
    for (int spins = 0; epoch_.load(std::memory_order_acquire) == seen;
         ++spins) {
      if (spins < kSpins) {
        Pause();
      } else {
        epoch_.wait(seen, std::memory_order_acquire);
      }
    }
    ++seen;
    if (stop_.load(std::memory_order_relaxed)) return;
    RunRanges(thread);
    if (working_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      working_.notify_one();
    }
  }
}

void ThreadPool::RunRanges(int thread) {
  while (true) {
    const int64_t begin =
        next_.fetch_add(region_.grain, std::memory_order_relaxed);
    if (begin >= region_.n) return;
    (*region_.body)(begin, std::min(region_.n, begin + region_.grain), thread);
  }
}

int AllowedCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    return std::max(1, CPU_COUNT(&set));
  }
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace tiercel
