#ifndef TIERCEL_OFFLOAD_RANKS_RANK_GROUP_H_
#define TIERCEL_OFFLOAD_RANKS_RANK_GROUP_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tiercel {

// The error of a rank that stops because another has failed: rank_failed.
absl::Status RankFailed();

// The ranks that compute one model together, a thread each: rank 0 is the
// caller's own. Run has every rank do its part of a call; within its part a
// rank meets the others, all in the same order. A rank that leaves its part
// with an error releases the ranks that wait for it, now or later: none hangs.
//
// A single rank has no thread, and never waits. One thread at a time may use a
// group.
class RankGroup {
 public:
  // Errors: no_thread.
  static absl::StatusOr<std::unique_ptr<RankGroup>> Create(int ranks);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  int ranks() const { return ranks_; }

  // Calls part(rank) for every rank at once, and returns when all are done.
  // Errors: that of the lowest rank with one of its own. An exception of rank 0
  // is thrown on; one of another rank becomes out_of_memory or internal.
  absl::Status Run(absl::FunctionRef<absl::Status(int rank)> part);

  // The number of calls of Run so far; within a part, including this one.
  uint32_t runs() const { return round_.load(std::memory_order_relaxed); }

  // A barrier within a part: waits until all ranks have called it, and gives
  // each the same answer: the error of the lowest rank that came with one. A
  // rank's writes before it are visible to all after it. Errors also:
  // rank_failed, where another rank's part has ended.
  absl::Status Meet(int rank, const absl::Status& mine = absl::OkStatus());
  // Meet over several works of which each rank does its part, as many for all
  // ranks: each[i] becomes the error of the lowest rank that came with one for
  // work i. After an error `each` is as it was.
  absl::Status MeetOver(int rank, absl::Span<absl::Status> each,
                        const absl::Status& mine = absl::OkStatus());

 private:
  explicit RankGroup(int ranks);
  void Work(int rank);
  absl::Status Guarded(int rank);
  // Releases the ranks that wait for this one, now or later in the Run.
  void Leave();
  absl::Status Outcome() const;

  const int ranks_;
  const std::chrono::nanoseconds spin_;  // polls of a rank before it sleeps

  // Run: a new round begins the other ranks' parts.
  alignas(64) std::atomic<uint32_t> round_{0};
  alignas(64) std::atomic<int> working_{0};
  std::atomic<bool> stop_{false};
  absl::FunctionRef<absl::Status(int rank)>* part_ = nullptr;
  std::vector<absl::Status> ended_;  // [rank]: how its part ended

  // Meet: the number of meetings so far, and a bit if a rank has left.
  alignas(64) std::atomic<uint32_t> meeting_{0};
  alignas(64) std::atomic<int> arrived_{0};
  std::vector<absl::Status> brought_;  // [rank]: the status that it came with
  // There are two: a rank may still read one when the next meeting is over.
  std::array<absl::Status, 2> outcome_;
  // Two as well: [rank][work], as MeetOver brought them.
  std::array<std::vector<std::vector<absl::Status>>, 2> works_;

  std::vector<std::thread> threads_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_RANKS_RANK_GROUP_H_
