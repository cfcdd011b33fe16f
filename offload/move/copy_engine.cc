#include "offload/move/copy_engine.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <system_error>
#include <utility>

#include "kernels/base/error.h"

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
    engine->thread_ = std::thread([raw = engine.get()] { raw->Run(); });
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
    for (Submission& submission : queue_) submission.drop.store(true);
  }
  submitted_.notify_all();
  if (thread_.joinable()) thread_.join();
}

CopyEngine::Ticket CopyEngine::Submit(Station station,
                                      std::vector<Transfer> transfers) {
  if (transfers.empty()) return 0;
  std::list<Submission> submission;
  submission.emplace_back(station, std::move(transfers));
  Ticket ticket;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    LinkUse& use = ledger_[static_cast<size_t>(station)];
    for (const Transfer& t : submission.front().transfers) {
      BytesOf(t.direction, use) += static_cast<uint64_t>(t.bytes);
    }
    ticket = ++last_;
    submission.front().ticket = ticket;
    queue_.splice(queue_.end(), submission);
  }
  submitted_.notify_one();
  return ticket;
}

absl::Status CopyEngine::Wait(Ticket ticket, Cancelled cancelled) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (done_ < ticket) {
    if (cancelled()) return CancelledError();
    finished_.wait_for(lock, kCancelPoll);
  }
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

bool CopyEngine::Done(Ticket ticket) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return done_ >= ticket;
}

void CopyEngine::Drop(Ticket ticket) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Submission& submission : queue_) {
    if (submission.ticket == ticket) submission.drop.store(true);
  }
}

LinkLedger CopyEngine::ledger() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ledger_;
}

void CopyEngine::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    submitted_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Submission& submission = queue_.front();
    lock.unlock();
    submission.status = Move(submission);
    lock.lock();
    done_ = submission.ticket;
    if (submission.status.ok()) {
      queue_.pop_front();
    } else {
      failed_.splice(failed_.end(), queue_, queue_.begin());
    }
    finished_.notify_all();
  }
}

absl::Status CopyEngine::Move(const Submission& submission) {
  absl::Status status;
  for (const Transfer& t : submission.transfers) {
    Link::Moved moved = {0, 0};
    if (status.ok() && !submission.drop.load()) {
      const absl::StatusOr<Link::Moved> copied = Copy(submission, t);
      if (copied.ok()) {
        moved = *copied;
      } else {
        status = copied.status();
      }
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    LinkUse& use = ledger_[static_cast<size_t>(submission.station)];
    // Counted when it was asked for; what did not move is taken off.
    BytesOf(t.direction, use) -= static_cast<uint64_t>(t.bytes - moved.bytes);
    use.busy_seconds += moved.seconds;
  }
  return status;
}

// The thread outlives a lack of memory. What says so is there before: neither
// it nor those who wait, on their way out perhaps, could make it now.
absl::StatusOr<Link::Moved> CopyEngine::Copy(const Submission& submission,
                                             const Transfer& transfer) {
  try {
    return link_->Copy(transfer, submission.since, submission.drop);
  } catch (const std::bad_alloc&) {
    return no_memory_;
  }
}

}  // namespace tiercel
