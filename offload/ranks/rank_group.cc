#include "offload/ranks/rank_group.h"

#include <chrono>
#include <new>
#include <system_error>

#include "kernels/system/resource_limits.h"
#include "kernels/system/spin.h"
#include "kernels/system/thread.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

constexpr uint32_t kLeft = uint32_t{1} << 31;  // a bit of meeting_

// Ranks meet some hundred times in a decode step: a waiting rank polls for so
// long before it sleeps. With more ranks than CPUs it sleeps at once, as
// polling would keep the ranks that it waits for from running.
constexpr std::chrono::microseconds kSpin{50};

// Waits until `word` is not `seen` any more, and returns its new value. Polls
// for `most` before it sleeps.
template <typename T>
T AwaitChange(const std::atomic<T>& word, T seen,
              std::chrono::nanoseconds most) {
  for (Spin spin(most);;) {
    const T now = word.load(std::memory_order_acquire);
    if (now != seen) return now;
    if (!spin.Again()) word.wait(seen, std::memory_order_acquire);
  }
}

// The joint status of all ranks: the error of the lowest rank, where one that
// says only that another rank has failed comes last.
absl::Status FirstOf(const std::vector<absl::Status>& statuses) {
  absl::Status first;
  for (const absl::Status& status : statuses) {
    if (status.ok()) continue;
    if (CodeOf(status) != "rank_failed") return status;
    first = status;
  }
  return first;
}

}  // namespace

absl::Status RankFailed() {
  return InternalError("rank_failed", "another rank has failed");
}

absl::StatusOr<std::unique_ptr<RankGroup>> RankGroup::Create(int ranks) {
  std::unique_ptr<RankGroup> group(new RankGroup(ranks));
  group->threads_.reserve(static_cast<size_t>(ranks - 1));
  try {
    for (int rank = 1; rank < ranks; ++rank) {
      group->threads_.push_back(
          StartThread([raw = group.get(), rank] { raw->Work(rank); }));
    }
  } catch (const std::system_error&) {
    return MemoryError("no_thread", "the system gives no thread for a rank");
  }
  return group;
}

RankGroup::RankGroup(int ranks)
    : ranks_(ranks),
      spin_(ranks > AllowedCpus() ? std::chrono::nanoseconds{0} : kSpin),
      ended_(static_cast<size_t>(ranks)),
      brought_(static_cast<size_t>(ranks)) {
  for (auto& works : works_) works.resize(static_cast<size_t>(ranks));
}

RankGroup::~RankGroup() {
  stop_.store(true, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void RankGroup::Work(int rank) {
  uint32_t seen = 0;
  for (;;) {
    seen = AwaitChange(round_, seen, spin_);
    if (stop_.load(std::memory_order_relaxed)) return;
    ended_[static_cast<size_t>(rank)] = Guarded(rank);
    if (working_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      working_.notify_all();
    }
  }
}

absl::Status RankGroup::Guarded(int rank) {
  const absl::Status status = (*part_)(rank);
  if (!status.ok()) Leave();
  return status;
}

absl::Status RankGroup::Run(absl::FunctionRef<absl::Status(int rank)> part) {
  if (ranks_ == 1) return part(0);
  // A status takes memory too: those that a rank's thread may need after a
  // throw are made beforehand.
  const absl::Status lacks_memory =
      MemoryError("out_of_memory", "the system gave no more memory");
  const absl::Status threw = InternalError("internal", "a rank's part threw");
  const auto caught = [&](int rank) {
    try {
      return part(rank);
    } catch (const std::bad_alloc&) {
      return lacks_memory;
    } catch (...) {
      return threw;
    }
  };
  absl::FunctionRef<absl::Status(int rank)> others = caught;
  part_ = &others;
  meeting_.store(0, std::memory_order_relaxed);
  arrived_.store(0, std::memory_order_relaxed);
  working_.store(ranks_ - 1, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  const auto join = [this] {
    for (int left = working_.load(std::memory_order_acquire); left > 0;) {
      left = AwaitChange(working_, left, spin_);
    }
  };
  try {
    ended_[0] = part(0);
  } catch (...) {
    Leave();
    join();
    throw;
  }
  if (!ended_[0].ok()) Leave();
  join();
  return FirstOf(ended_);
}

void RankGroup::Leave() {
  meeting_.fetch_or(kLeft, std::memory_order_release);
  meeting_.notify_all();
}

absl::Status RankGroup::Meet(int rank, const absl::Status& mine) {
  if (ranks_ == 1) return mine;
  const uint32_t meeting = meeting_.load(std::memory_order_acquire);
  if ((meeting & kLeft) != 0) return mine.ok() ? RankFailed() : mine;
  brought_[static_cast<size_t>(rank)] = mine;
  absl::Status& outcome = outcome_[meeting % 2];
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == ranks_) {
    outcome = FirstOf(brought_);
    arrived_.store(0, std::memory_order_relaxed);
    // Adding keeps the kLeft bit of a rank that leaves meanwhile.
    meeting_.fetch_add(1, std::memory_order_acq_rel);
    meeting_.notify_all();
    return outcome;
  }
  for (uint32_t now = meeting;;) {
    now = AwaitChange(meeting_, now, spin_);
    if ((now & ~kLeft) != meeting) return outcome;  // all ranks have come
    if ((now & kLeft) != 0) return mine.ok() ? RankFailed() : mine;
  }
}

absl::Status RankGroup::MeetOver(int rank, absl::Span<absl::Status> each,
                                 const absl::Status& mine) {
  if (ranks_ == 1) return mine;
  auto& works = works_[meeting_.load(std::memory_order_acquire) % 2];
  works[static_cast<size_t>(rank)].assign(each.begin(), each.end());
  RETURN_IF_ERROR(Meet(rank, mine));
  std::vector<absl::Status> brought(works.size());  // [rank]
  for (size_t i = 0; i < each.size(); ++i) {
    for (size_t r = 0; r < works.size(); ++r) brought[r] = works[r][i];
    each[i] = FirstOf(brought);
  }
  return absl::OkStatus();
}

}  // namespace tiercel
