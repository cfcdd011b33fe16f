#include "kernels/system/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <system_error>

#include "kernels/system/spin.h"
#include "kernels/system/thread.h"

namespace tiercel {
namespace {

// Longer than the serial stretches of a decode step, but too short to keep an
// idle machine busy.
constexpr std::chrono::microseconds kSpin{50};

// state_ has the number of workers inside (low 15 bits), a bit for closed, and
// the number of the region (high 16). The number wraps after 65,536 regions: a
// worker that slept through exactly that many misses one, which the others
// complete.
constexpr uint32_t kInside = 0x7fff;
constexpr uint32_t kClosed = 0x8000;
constexpr uint32_t kOneRegion = 0x10000;

uint32_t NumberOf(uint32_t state) { return state / kOneRegion; }

}  // namespace

ThreadPool::ThreadPool(int threads) : state_(kClosed) {
  threads = std::min(threads, static_cast<int>(kInside));
  in_use_ = std::max(1, threads);
  workers_.reserve(static_cast<size_t>(std::max(0, threads - 1)));
  for (int i = 1; i < threads; ++i) {
    try {
      workers_.push_back(StartThread([this, i] { WorkerLoop(i); }));
    } catch (const std::system_error&) {
      break;  // the system's limit; the pool works with fewer threads
    } catch (const std::bad_alloc&) {
      break;
    }
  }
  in_use_ = num_threads();
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  Use(num_threads());
  state_.fetch_add(kOneRegion, std::memory_order_release);
  state_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Use(int threads) {
  in_use_.store(std::clamp(threads, 1, num_threads()),
                std::memory_order_release);
  in_use_.notify_all();
}

void ThreadPool::ParallelFor(
    int64_t n, int64_t grain,
    absl::FunctionRef<void(int64_t, int64_t, int)> body) {
  if (n <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  if (threads_in_use() == 1 || n <= grain) {
    for (int64_t begin = 0; begin < n; begin += grain) {
      body(begin, std::min(n, begin + grain), 0);
    }
    return;
  }
  const std::lock_guard<std::mutex> turn(turn_);
  region_ = {&body, n, grain};
  next_.store(0, std::memory_order_relaxed);
  const uint32_t last = state_.load(std::memory_order_relaxed);
  state_.store((NumberOf(last) + 1) * kOneRegion, std::memory_order_release);
  state_.notify_all();
  RunRanges(0);
  Close();
}

void ThreadPool::WorkerLoop(int thread) {
  uint32_t seen = 0;
  while (true) {
    WaitUntilUsed(thread);
    uint32_t state = state_.load(std::memory_order_acquire);
    for (Spin spin(kSpin); NumberOf(state) == seen;) {
      if (stop_.load(std::memory_order_relaxed)) return;
      if (!spin.Again()) state_.wait(state, std::memory_order_acquire);
      state = state_.load(std::memory_order_acquire);
    }
    seen = NumberOf(state);
    if (stop_.load(std::memory_order_relaxed)) return;
    if (thread >= threads_in_use() || !Enter(state)) continue;
    RunRanges(thread);
    Leave();
  }
}

void ThreadPool::WaitUntilUsed(int thread) const {
  int in_use = in_use_.load(std::memory_order_acquire);
  while (thread >= in_use) {
    in_use_.wait(in_use, std::memory_order_acquire);
    in_use = in_use_.load(std::memory_order_acquire);
  }
}

// Counts a worker into the region of `state`. Returns false if it is over.
bool ThreadPool::Enter(uint32_t state) {
  const uint32_t number = NumberOf(state);
  while (NumberOf(state) == number && (state & kClosed) == 0) {
    if (state_.compare_exchange_weak(state, state + 1,
                                     std::memory_order_acquire)) {
      return true;
    }
  }
  return false;
}

void ThreadPool::Leave() {
  const uint32_t before = state_.fetch_sub(1, std::memory_order_acq_rel);
  if ((before & kClosed) != 0 && (before & kInside) == 1) {
    empty_.fetch_add(1, std::memory_order_release);
    empty_.notify_one();
  }
}

// Lets no further worker in, and waits for those inside.
void ThreadPool::Close() {
  uint32_t state = state_.fetch_or(kClosed, std::memory_order_acq_rel);
  for (Spin spin(kSpin); (state & kInside) != 0;) {
    if (!spin.Again()) {
      const uint32_t empty = empty_.load(std::memory_order_acquire);
      if ((state_.load(std::memory_order_acquire) & kInside) != 0) {
        empty_.wait(empty, std::memory_order_acquire);
      }
    }
    state = state_.load(std::memory_order_acquire);
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

}  // namespace tiercel
