#include "offload/move/copy_engine.h"

#include <chrono>
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

CopyEngine::CopyEngine(std::unique_ptr<Link> link) : link_(std::move(link)) {}

CopyEngine::~CopyEngine() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    for (Submission& submission : queue_) submission.drop->store(true);
  }
  submitted_.notify_all();
  if (thread_.joinable()) thread_.join();
}

CopyEngine::Ticket CopyEngine::Submit(Station station,
                                      std::vector<Transfer> transfers) {
  if (transfers.empty()) return 0;
  Ticket ticket;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    LinkUse& use = ledger_[static_cast<size_t>(station)];
    for (const Transfer& t : transfers) {
      BytesOf(t.direction, use) += static_cast<uint64_t>(t.bytes);
    }
    ticket = ++last_;
    queue_.push_back({ticket, station, Link::Clock::now(), std::move(transfers),
                      std::make_shared<std::atomic<bool>>(false)});
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
  const auto failed = failed_.find(ticket);
  if (failed == failed_.end()) return absl::OkStatus();
  const absl::Status status = failed->second;
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
    if (submission.ticket == ticket) submission.drop->store(true);
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
    // References into a deque outlive what is pushed behind them.
    const Submission& submission = queue_.front();
    lock.unlock();
    absl::Status status = Move(submission);
    lock.lock();
    done_ = submission.ticket;
    if (!status.ok()) failed_[done_] = std::move(status);
    queue_.pop_front();
    finished_.notify_all();
  }
}

absl::Status CopyEngine::Move(const Submission& submission) {
  absl::Status status;
  for (const Transfer& t : submission.transfers) {
    Link::Moved moved = {0, 0};
    if (status.ok() && !submission.drop->load()) {
      const absl::StatusOr<Link::Moved> copied =
          link_->Copy(t, submission.since, *submission.drop);
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

}  // namespace tiercel
