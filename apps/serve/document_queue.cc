#include "apps/serve/document_queue.h"

#include <exception>
#include <iterator>
#include <new>
#include <utility>

#include "apps/cli/error.h"
#include "apps/commands/book.h"
#include "apps/serve/refusal.h"
#include "apps/terminal/signals.h"
#include "lib/status/status_macros.h"

namespace tiercel::serve {
namespace {

// Reads a document, whose bytes go before its JSON is made.
absl::StatusOr<std::string> JsonOf(const std::string& name, std::string bytes) {
  // The library throws nothing; what the standard library throws ends here.
  try {
    ASSIGN_OR_RETURN(const document::Document book, cli::BookIn(name, bytes));
    std::exchange(bytes, {});
    return cli::Dump(cli::Described(book));
  } catch (const std::bad_alloc&) {
    return HttpError(503, "out_of_memory", "out of memory");
  } catch (const std::exception& exception) {
    return HttpError(500, "internal", exception.what());
  }
}

}  // namespace

DocumentQueue::DocumentQueue(size_t most_waiting)
    : most_waiting_(most_waiting), thread_([this] { Work(); }) {}

DocumentQueue::~DocumentQueue() {
  CancelAll();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::optional<DocumentQueue::Id> DocumentQueue::Add(Job job) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (waiting_.size() >= most_waiting_) return std::nullopt;
  waiting_.push_back({++last_id_, std::move(job)});
  changed_.notify_all();
  return last_id_;
}

void DocumentQueue::Cancel(Id id) {
  std::optional<Entry> entry;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto one = waiting_.begin(); one != waiting_.end(); ++one) {
      if (one->id != id) continue;
      entry = std::move(*one);
      waiting_.erase(one);
      break;
    }
  }
  if (entry.has_value()) entry->job.on_end(cli::Interrupted());
}

void DocumentQueue::CancelAll() {
  std::deque<Entry> entries;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    entries = std::exchange(waiting_, {});
  }
  for (const Entry& entry : entries) entry.job.on_end(cli::Interrupted());
}

void DocumentQueue::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    Entry entry = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    entry.job.on_end(JsonOf(entry.job.name, std::move(entry.job.bytes)));
    entry = {};
    lock.lock();
  }
}

}  // namespace tiercel::serve
