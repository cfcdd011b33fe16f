#ifndef TIERCEL_KERNELS_SYSTEM_THREAD_POOL_H_
#define TIERCEL_KERNELS_SYSTEM_THREAD_POOL_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"

namespace tiercel {

// A fork-join pool for regions of a few microseconds: a decode step is a chain
// of some hundred of them. The caller works too, and waits only for workers
// that took part: on a busy machine a region does not wait until every thread
// has had its turn. Workers spin for a short while between regions, then sleep,
// so an idle process uses no CPU time.
//
// Timing decides which thread computes a range, so a body's result must not
// depend on it (row invariance). Callers on different threads take turns, a
// region each. A body must not throw or start a region.
class ThreadPool {
 public:
  // Starts at most `threads` (>= 1) threads, the caller included. If the system
  // refuses a thread, the pool is smaller; see num_threads().
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Has only `threads` of them (at least the caller, at most all) work from the
  // next region on; the others sleep. May be called at any time.
  void Use(int threads);
  int threads_in_use() const { return in_use_.load(std::memory_order_relaxed); }

  // Calls body(begin, end, thread) for disjoint ranges that cover [0, n), each
  // of `grain` but for the last, `thread` in [0, num_threads()). Returns when
  // all are done. What the bodies wrote is visible to the caller.
  void ParallelFor(int64_t n, int64_t grain,
                   absl::FunctionRef<void(int64_t, int64_t, int)> body);

 private:
  struct Region {
    absl::FunctionRef<void(int64_t, int64_t, int)>* body = nullptr;
    int64_t n = 0;
    int64_t grain = 1;
  };

  void WorkerLoop(int thread);
  void WaitUntilUsed(int thread) const;
  bool Enter(uint32_t state);
  void Leave();
  void Close();
  void RunRanges(int thread);

  std::mutex turn_;  // held by the caller whose region runs
  // Written by the caller while no worker is inside, read by workers inside.
  Region region_;
  // The region's number, whether it is closed, and the number of workers inside
  // (thread_pool.cc). They are one word, so that a worker enters only the
  // region that it has seen.
  alignas(64) std::atomic<uint32_t> state_;
  alignas(64) std::atomic<int64_t> next_{0};    // first index not taken yet
  alignas(64) std::atomic<uint32_t> empty_{0};  // closed regions left by all
  alignas(64) std::atomic<bool> stop_{false};
  std::atomic<int> in_use_{1};  // threads from this number on sleep
  std::vector<std::thread> workers_;
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SYSTEM_THREAD_POOL_H_
