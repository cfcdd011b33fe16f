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

// Moves bytes between the tiers beside the arithmetic: a queue, and a thread
// that works it off in order. Order is the promise everything else rests on: a
// page that was sent down before it is fetched comes back as it was sent, and
// a buffer that is filled again is filled after its last use left. What is
// urgent has a queue of its own, and no such promise towards the other. Nothing
// is moved before the device has computed what it was given until then.
//
// Every byte is counted where it moves. Thread-safe.
class CopyEngine {
 public:
  // Errors: no_thread.
  static absl::StatusOr<std::unique_ptr<CopyEngine>> Create(
      std::unique_ptr<Link> link);
  ~CopyEngine();  // drops what has not begun
  CopyEngine(const CopyEngine&) = delete;
  CopyEngine& operator=(const CopyEngine&) = delete;

  // What Submit was given, as one thing to wait for; tickets rise. 0 is done.
  using Ticket = uint64_t;
  // kUrgent goes before every transfer that has not begun and is not urgent.
  // None of those may write what it reads, or touch what it writes.
  enum class Turn { kInOrder, kUrgent };
  Ticket Submit(Station station, std::vector<Transfer> transfers,
                Turn turn = Turn::kInOrder);

  // Waits until the ticket is done; its first error, if it met one (told once):
  // the link's, or out_of_memory.
  // `cancelled` is asked now and then: true ends the waiting, not the copy.
  // Takes no memory unless cancelled.
  using Cancelled = absl::FunctionRef<bool()>;
  absl::Status Wait(Ticket ticket, Cancelled cancelled);
  absl::Status Wait(Ticket ticket);
  // Waits likewise; whatever comes of it, nothing is on its way afterwards.
  absl::Status WaitOrDrop(Ticket ticket, Cancelled cancelled);
  // Waits until the ticket is done, whatever came of it, which is not told.
  // Errors: cancelled.
  absl::Status WaitUntold(Ticket ticket, Cancelled cancelled);
  bool Done(Ticket ticket) const;
  // Whether the ticket is done with an error that nobody has been told.
  bool Failed(Ticket ticket) const;

  // Leaves out what of the ticket has not been moved yet. It is done soon, and
  // what it was to fill is undefined.
  void Drop(Ticket ticket);

  // Memory of the host tier, as the link has it. Errors: out_of_memory.
  absl::StatusOr<HostRegion> NewRegion(size_t bytes) const {
    return host_has_addresses() ? HostRegion::Reserve(bytes)
                                : HostRegion::ReserveUnmapped(bytes);
  }
  bool host_has_addresses() const { return link_->HostHasAddresses(); }
  // Called before `region` ends, when all its tickets are done.
  void Forget(const HostRegion& region) { link_->Forget(region); }

  // What has moved so far, or is on its way. What is dropped there is taken off
  // when its turn comes.
  LinkLedger ledger() const;

 private:
  struct Submission {
    Ticket ticket = 0;
    Station station;
    Clock::Time since;
    uint64_t mark;  // what the device is to have computed before
    std::vector<Transfer> transfers;
    size_t next = 0;  // of them, to be moved
    std::atomic<bool> drop{false};
    absl::Status status;

    Submission(Station s, Clock::Time asked, uint64_t given,
               std::vector<Transfer> t)
        : station(s), since(asked), mark(given), transfers(std::move(t)) {}
  };

  explicit CopyEngine(std::unique_ptr<Link> link);
  void Run();
  // The queue whose front is next; null: both are empty.
  std::list<Submission>* NextQueue();
  bool IsQueued(Ticket ticket) const;
  absl::StatusOr<Link::Moved> Move(const Submission& submission, size_t next);
  absl::StatusOr<double> Finish(const Submission& submission);
  // Enters an error of the link's Finish with all that has begun.
  void FailBegun(const absl::Status& error);

  const std::unique_ptr<Link> link_;
  const absl::Status no_memory_;
  mutable std::mutex mutex_;
  std::condition_variable submitted_;
  std::condition_variable finished_;
  std::array<std::list<Submission>, 2> queues_;  // [turn]
  Ticket last_ = 0;                              // given out
  // Out of the queue: the engine's own thread takes no memory.
  std::list<Submission> failed_;
  LinkLedger ledger_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_MOVE_COPY_ENGINE_H_
