#ifndef TIERCEL_OFFLOAD_MOVE_COPY_ENGINE_H_
#define TIERCEL_OFFLOAD_MOVE_COPY_ENGINE_H_

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "offload/move/link.h"
#include "offload/tier/ledger.h"

namespace tiercel {

// Moves bytes between the tiers while the device computes: a queue, and a
// thread that works through it in order. All else relies on that order: a page
// that is sent down and then fetched comes back as it was sent, and a buffer is
// filled again only after its earlier contents have left. Urgent transfers have
// a queue of their own, without an order between the two. A transfer begins
// only after the device has computed what it had been given at Submit.
//
// Every byte is counted where it moves. Thread-safe.
class CopyEngine {
 public:
  // Errors: no_thread.
  static absl::StatusOr<std::unique_ptr<CopyEngine>> Create(
      std::unique_ptr<Link> link);
  ~CopyEngine();  // drops transfers that have not begun
  CopyEngine(const CopyEngine&) = delete;
  CopyEngine& operator=(const CopyEngine&) = delete;

  // A submission, to wait for. Later tickets are greater; 0 is always done.
  using Ticket = uint64_t;
  // kUrgent transfers go before all others that have not begun. None of those
  // may write what an urgent one reads, or touch what it writes.
  enum class Turn { kInOrder, kUrgent };
  Ticket Submit(Phase phase, std::vector<Transfer> transfers,
                Turn turn = Turn::kInOrder);

  // Waits until the ticket is done. Returns its first error, which later calls
  // do not return again: the link's, or out_of_memory. `cancelled` is called
  // now and then: true ends the waiting, not the copy. Allocates no memory
  // unless cancelled.
  using Cancelled = absl::FunctionRef<bool()>;
  absl::Status Wait(Ticket ticket, Cancelled cancelled);
  absl::Status Wait(Ticket ticket);
  // Waits likewise, but drops the ticket if cancelled: no copy of it is under
  // way afterwards.
  absl::Status WaitOrDrop(Ticket ticket, Cancelled cancelled);
  // Waits until the ticket is done, and leaves its error to be returned by
  // Wait. Errors: cancelled.
  absl::Status WaitUntold(Ticket ticket, Cancelled cancelled);
  bool Done(Ticket ticket) const;
  // Returns true if the ticket is done with an error that Wait has not yet
  // returned.
  bool Failed(Ticket ticket) const;

  // Skips the transfers of the ticket that have not been made. It is done soon,
  // and the memory that it was to fill is undefined.
  void Drop(Ticket ticket);

  // Called before `region` ends, when all its tickets are done.
  void Forget(const HostRegion& region) { link_->Forget(region); }

  // The bytes of all transfers that were asked for so far. Those of a dropped
  // transfer are taken off when its turn comes.
  LinkLedger ledger() const;

 private:
  struct Submission {
    Ticket ticket = 0;
    Phase phase;
    Clock::Time since;
    uint64_t mark;  // the device must have computed all before it
    std::vector<Transfer> transfers;
    size_t next = 0;  // index of the next transfer to be made
    std::atomic<bool> drop{false};
    absl::Status status;

    Submission(Phase s, Clock::Time asked, uint64_t given,
               std::vector<Transfer> t)
        : phase(s), since(asked), mark(given), transfers(std::move(t)) {}
  };

  explicit CopyEngine(std::unique_ptr<Link> link);
  void Run();
  // The queue whose front is next; null: both are empty.
  std::list<Submission>* NextQueue();
  bool IsQueued(Ticket ticket) const;
  absl::StatusOr<Link::Moved> Move(const Submission& submission, size_t next);
  absl::StatusOr<double> Finish(const Submission& submission);
  // Gives an error of the link's Finish to all submissions that have begun.
  void FailBegun(const absl::Status& error);

  const std::unique_ptr<Link> link_;
  const absl::Status no_memory_;
  mutable std::mutex mutex_;
  std::condition_variable submitted_;
  std::condition_variable finished_;
  std::array<std::list<Submission>, 2> queues_;  // [turn]
  Ticket last_ = 0;                              // the last that was given out
  // Submissions that failed, moved here from the queue, as the engine's thread
  // allocates no memory.
  std::list<Submission> failed_;
  LinkLedger ledger_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_MOVE_COPY_ENGINE_H_
