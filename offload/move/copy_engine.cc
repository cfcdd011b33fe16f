#include "offload/move/copy_engine.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "kernels/system/thread.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

constexpr auto kCancelPoll = std::chrono::milliseconds(10);

uint64_t& BytesOf(Direction direction, LinkUse& use) {
  return direction == Direction::kHostToDevice ? use.h2d_bytes : use.d2h_bytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CopyEngine>> CopyEngine::Create(
    std::unique_ptr<Link> link) {
  std::unique_ptr<CopyEngine> engine(new CopyEngine(std::move(link)));
  try {
    engine->thread_ = StartThread([raw = engine.get()] { raw->Run(); });
  } catch (const std::system_error&) {
    return MemoryError("no_thread",
                       "copy engine: the system gives no thread for it");
  }
  return engine;
}

CopyEngine::CopyEngine(std::unique_ptr<Link> link)
    : link_(std::move(link)),
      no_memory_(MemoryError("out_of_memory",
                             "copy engine: the system gave no more memory")) {}

CopyEngine::~CopyEngine() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    for (std::list<Submission>& queue : queues_) {
      for (Submission& submission : queue) submission.drop.store(true);
    }
  }
  submitted_.notify_all();
  if (thread_.joinable()) thread_.join();
}

CopyEngine::Ticket CopyEngine::Submit(Phase phase,
                                      std::vector<Transfer> transfers,
                                      Turn turn) {
  if (transfers.empty()) return 0;
  std::list<Submission> submission;
  submission.emplace_back(phase, link_->clock().Now(), link_->Mark(),
                          std::move(transfers));
  Ticket ticket;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    LinkUse& use = ledger_[static_cast<size_t>(phase)];
    for (const Transfer& t : submission.front().transfers) {
      BytesOf(t.direction, use) += static_cast<uint64_t>(t.bytes);
    }
    ticket = ++last_;
    submission.front().ticket = ticket;
    std::list<Submission>& queue = queues_[static_cast<size_t>(turn)];
    queue.splice(queue.end(), submission);
  }
  submitted_.notify_one();
  return ticket;
}

absl::Status CopyEngine::WaitUntold(Ticket ticket, Cancelled cancelled) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (IsQueued(ticket)) {
    if (cancelled()) return CancelledError();
    finished_.wait_for(lock, kCancelPoll);
  }
  return absl::OkStatus();
}

absl::Status CopyEngine::Wait(Ticket ticket, Cancelled cancelled) {
  RETURN_IF_ERROR(WaitUntold(ticket, cancelled));
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto failed = std::find_if(
      failed_.begin(), failed_.end(),
      [ticket](const Submission& s) { return s.ticket == ticket; });
  if (failed == failed_.end()) return absl::OkStatus();
  absl::Status status = std::move(failed->status);
  failed_.erase(failed);
  return status;
}

absl::Status CopyEngine::Wait(Ticket ticket) {
  return Wait(ticket, [] { return false; });
}

absl::Status CopyEngine::WaitOrDrop(Ticket ticket, Cancelled cancelled) {
  const absl::Cleanup drop = [this, ticket] {
    Drop(ticket);
    (void)Wait(ticket);
  };
  return Wait(ticket, cancelled);
}

bool CopyEngine::Done(Ticket ticket) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !IsQueued(ticket);
}

bool CopyEngine::Failed(Ticket ticket) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::any_of(
      failed_.begin(), failed_.end(),
      [ticket](const Submission& s) { return s.ticket == ticket; });
}

bool CopyEngine::IsQueued(Ticket ticket) const {
  // Tickets rise in each queue, so its first is its lowest.
  return std::any_of(queues_.begin(), queues_.end(), [&](const auto& queue) {
    return !queue.empty() && queue.front().ticket <= ticket &&
           std::any_of(queue.begin(), queue.end(),
                       [&](const Submission& s) { return s.ticket == ticket; });
  });
}

void CopyEngine::Drop(Ticket ticket) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (std::list<Submission>& queue : queues_) {
    for (Submission& submission : queue) {
      if (submission.ticket == ticket) submission.drop.store(true);
    }
  }
}

LinkLedger CopyEngine::ledger() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ledger_;
}

std::list<CopyEngine::Submission>* CopyEngine::NextQueue() {
  for (const Turn turn : {Turn::kUrgent, Turn::kInOrder}) {
    std::list<Submission>& queue = queues_[static_cast<size_t>(turn)];
    if (!queue.empty()) return &queue;
  }
  return nullptr;
}

void CopyEngine::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    submitted_.wait(lock, [this] { return stop_ || NextQueue() != nullptr; });
    std::list<Submission>* const queue = NextQueue();
    if (queue == nullptr) return;
    Submission& submission = queue->front();
    const size_t next = submission.next++;
    lock.unlock();
    absl::StatusOr<Link::Moved> moved = Move(submission, next);
    absl::StatusOr<double> finished = 0.0;
    // Even after an error, no copy of a submission is under way when it is
    // done.
    if (submission.next == submission.transfers.size()) {
      finished = Finish(submission);
    }
    lock.lock();
    submission.status.Update(moved.status());
    if (!finished.ok()) FailBegun(finished.status());
    LinkUse& use = ledger_[static_cast<size_t>(submission.phase)];
    // The bytes were counted when asked for; those that did not move are taken
    // off.
    const Transfer& transfer = submission.transfers[next];
    BytesOf(transfer.direction, use) -=
        static_cast<uint64_t>(transfer.bytes - (moved.ok() ? moved->bytes : 0));
    use.busy_seconds +=
        (moved.ok() ? moved->seconds : 0) + finished.value_or(0);
    if (submission.next < submission.transfers.size()) continue;
    if (submission.status.ok()) {
      queue->pop_front();
    } else {
      failed_.splice(failed_.end(), *queue, queue->begin());
    }
    finished_.notify_all();
  }
}

// The copy that failed may be one of a submission that an urgent one has
// interrupted.
void CopyEngine::FailBegun(const absl::Status& error) {
  for (std::list<Submission>& queue : queues_) {
    if (!queue.empty() && queue.front().next > 0) {
      queue.front().status.Update(error);
    }
  }
}

// The thread goes on after a lack of memory. The error was made in advance, as
// neither this thread nor those that wait have the memory to make it now.
absl::StatusOr<Link::Moved> CopyEngine::Move(const Submission& submission,
                                             size_t next) {
  if (!submission.status.ok() || submission.drop.load()) {
    return Link::Moved{0, 0};
  }
  try {
    if (next == 0) {
      RETURN_IF_ERROR(link_->Await(submission.mark));
      link_->Begin(submission.transfers);
    }
    return link_->Copy(submission.transfers[next], submission.since,
                       submission.drop);
  } catch (const std::bad_alloc&) {
    return no_memory_;
  }
}

absl::StatusOr<double> CopyEngine::Finish(const Submission& submission) {
  absl::StatusOr<double> finished = no_memory_;
  try {
    finished = link_->Finish();
  } catch (const std::bad_alloc&) {
  }
  link_->End(submission.transfers);
  return finished;
}

}  // namespace tiercel
