#include "runtime/api/queue.h"

#include <chrono>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "kernels/system/thread.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "runtime/api/session_calls.h"
#include "runtime/session/page_room.h"

namespace tiercel {
namespace {

// Lends the turns to the calls that wait, until all have had them. A call that
// has one of them may need another.
void LetOthers(const std::vector<std::shared_ptr<Turns>>& all) {
  for (;;) {
    for (const auto& turns : all) turns->Lend();
    bool back = true;
    for (const auto& turns : all) back = turns->TakeBack() && back;
    if (back) return;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Queue>> Queue::Create(
    std::shared_ptr<const Model> model, size_t at_once) {
  std::unique_ptr<Queue> queue(new Queue(std::move(model), at_once));
  try {
    queue->thread_ = StartThread([raw = queue.get()] { raw->Work(); });
  } catch (const std::system_error&) {
    return MemoryError("no_thread", "queue: the system gives no thread");
  }
  return queue;
}

Queue::~Queue() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
    for (Job& job : running_) Cancel(job);
  }
  changed_.notify_all();
  thread_.join();
}

// ---- For the program ----

absl::Status Queue::Add(const tiercel_batch_entry* entry,
                        tiercel_on_end on_end) {
  RETURN_IF_ERROR(CheckProcess());
  const std::lock_guard<std::mutex> lock(mutex_);
  if (ends_) return CancelledError();
  tiercel_session* taken = nullptr;
  // Runs after an exception, too.
  absl::Cleanup release = [&] {
    if (taken != nullptr) Release(taken);
  };
  const auto take =
      [&](tiercel_session* session) -> absl::StatusOr<KnownBreakers*> {
    if (session->model != model_) {
      return UsageError("invalid_argument",
                        "entry: its session is of another model than the "
                        "queue");
    }
    RETURN_IF_ERROR(Take(session));
    taken = session;
    return &breakers_;
  };
  ASSIGN_OR_RETURN(BatchEntry read, BatchEntry::Read("entry", entry, take));
  waiting_.push_back({std::move(read), on_end});
  std::move(release).Cancel();
  changed_.notify_all();
  return absl::OkStatus();
}

absl::Status Queue::Take(tiercel_session* session) {
  if (IsForked(session)) return TurnAt(session).status();
  const absl::Status in_use = UsageError(
      "session_in_use", "session: another call, or an entry, uses it");
  if (session->in_queue.exchange(true)) return in_use;
  Held& held = held_[session->turns.get()];
  if (held.turns == nullptr) {
    if (!session->turns->TakeFor(thread_.get_id())) {
      held_.erase(session->turns.get());
      session->in_queue = false;
      return in_use;
    }
    held.turns = session->turns;
  }
  ++held.entries;
  return absl::OkStatus();
}

void Queue::Cancel(Job& job) {
  job.cancelled = true;
  job.entry.session()->session->cancellation().Cancel();
}

void Queue::Release(tiercel_session* session) {
  const auto held = held_.find(session->turns.get());
  session->in_queue = false;
  if (--held->second.entries > 0) return;
  const std::shared_ptr<Turns> turns = held->second.turns;
  held_.erase(held);
  turns->EndQueue();
}

absl::Status Queue::CheckProcess() const {
  if (getpid() == process_) return absl::OkStatus();
  return UsageError(
      "forked",
      absl::StrCat("queue: made in process ", process_, ", used in ", getpid(),
                   "; after fork() make one of this process"));
}

absl::Status Queue::Wait() {
  RETURN_IF_ERROR(CheckProcess());
  if (IsInCallback()) {
    return UsageError("invalid_argument",
                      "queue: a callback of it, or of a call for which it "
                      "waits, cannot wait for it");
  }
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] {
    return waiting_.empty() && running_.empty() && ending_ == 0;
  });
  return absl::OkStatus();
}

size_t Queue::running() const {
  if (!CheckProcess().ok()) return 0;
  const std::lock_guard<std::mutex> lock(mutex_);
  return running_.size();
}

size_t Queue::waiting() const {
  if (!CheckProcess().ok()) return 0;
  const std::lock_guard<std::mutex> lock(mutex_);
  return waiting_.size();
}

// ---- On the queue's thread ----

void Queue::Work() {
  CallersThread callers;
  callers_ = &callers;
  Turns::NeverWait();
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
    }
    MakeEntries();
  }
}

void Queue::MakeEntries() {
  const Session* first = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    first = waiting_.front().entry.session()->session.get();
  }
  absl::Status made;
  absl::Status status = Guarded([&] {
    absl::StatusOr<std::unique_ptr<Batch>> batch = Batch::Create(*first);
    made = batch.ok() ? (*batch)->Run({}, [&] { return Admit(**batch); })
                      : batch.status();
  });
  status.Update(made);
  // All that began have ended, unless the batch itself failed.
  if (status.ok()) return;
  std::unique_lock<std::mutex> lock(mutex_);
  if (running_.empty() && !waiting_.empty()) {
    running_.splice(running_.end(), waiting_, waiting_.begin());
  }
  while (!running_.empty()) {
    running_.front().status = status;
    lock.unlock();
    End(running_.begin());
    lock.lock();
  }
}

std::vector<Batch::Call> Queue::Admit(Batch& batch) {
  std::vector<std::shared_ptr<Turns>> turns;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [key, held] : held_) turns.push_back(held.turns);
  }
  LetOthers(turns);

  std::vector<Batch::Call> calls;
  const std::lock_guard<std::mutex> lock(mutex_);
  while (!waiting_.empty() && running_.size() < at_once_) {
    Session& session = *waiting_.front().entry.session()->session;
    // An entry that is cancelled needs no room.
    const bool begins = ends_ || running_.empty() ||
                        session.cancellation().cancelled() ||
                        HasRoom(waiting_.front());
    if (!begins) break;
    running_.splice(running_.end(), waiting_, waiting_.begin());
    const auto job = std::prev(running_.end());
    if (ends_) Cancel(*job);
    const auto ended = [this, job](const absl::Status& begun) {
      job->status.Update(begun);
      End(job);
    };
    calls.push_back(
        {session, [this, job, &batch] { Make(*job, batch); }, ended});
  }
  return calls;
}

// Returns true if there is memory for what `job` and those that are made may
// still take.
bool Queue::HasRoom(const Job& job) const {
  PageNeeds needs;
  for (const Job& other : running_) {
    const Session& session = *other.entry.session()->session;
    needs.Add(session, session.sequence().kv_length(),
              other.entry.MostTokens());
  }
  const Session& session = *job.entry.session()->session;
  needs.Add(session, job.entry.KeptTokens(), job.entry.MostTokens());
  return needs.Fit();
}

// Runs on the strand of a call.
void Queue::Make(Job& job, Batch& batch) {
  absl::Status thrown;
  const auto call_out = [&](absl::FunctionRef<bool()> callback) {
    bool more = false;
    const auto call = [&] {
      thrown.Update(Guarded([&] { more = callback(); }));
    };
    return batch.OnCaller(call) && more;
  };
  const absl::Status made = job.entry.Make(*callers_, call_out);
  job.status = thrown.ok() ? made : thrown;
}

void Queue::End(std::list<Job>::iterator job) {
  std::list<Job> ended;
  const std::shared_ptr<Log> log = job->entry.session()->log;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended.splice(ended.end(), running_, job);
    ++ending_;
    job->entry.Report(job->status);
    tiercel_session& session = *job->entry.session();
    session.length = session.session->sequence().tokens().size();
    // The next call on the session is another's.
    if (job->cancelled) session.session->cancellation().Clear();
    Release(&session);
  }
  (void)Told(log, *callers_, job->status);
  if (job->on_end != nullptr) {
    tiercel_error error = {};
    error.struct_size = sizeof(error);
    const tiercel_status status = ReportStatus(job->status, &error);
    // The entry has ended, so that an exception ends nothing else.
    (void)Guarded([&] {
      callers_->Call(job->on_end, job->entry.user_data(), status, &error);
    });
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  --ending_;
  changed_.notify_all();
}

}  // namespace tiercel
