#include "apps/commands/queue.h"

#include <exception>

#include "apps/cli/tried.h"
#include "apps/terminal/signals.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {

absl::Status GenerateBatch(std::vector<BatchEntry>& entries) {
  std::vector<tiercel_session*> sessions;
  std::vector<Entry> batch;
  for (BatchEntry& entry : entries) {
    tiercel::Session& session = entry.session->handle();
    sessions.push_back(session.get());
    batch.push_back({&session, entry.sampling, entry.prompt,
                     Watched(entry.on_token), /*progress=*/{}, &entry.result});
  }
  const CancelOnSignal cancel(std::move(sessions));
  ASSIGN_OR_RETURN(const std::vector<std::exception_ptr> ends,
                   Tried([&] { return generate_batch(batch); }));
  for (size_t i = 0; i < entries.size(); ++i) {
    entries[i].status = StatusOf(ends[i]);
  }
  return absl::OkStatus();
}

absl::StatusOr<Queue> Queue::Create(const Model& model, size_t at_once) {
  auto params = defaults<tiercel_queue_params>();
  params.at_once = static_cast<int64_t>(at_once);
  return Tried([&] { return Queue(tiercel::Queue(model.handle(), params)); });
}

absl::Status Queue::Add(Session& session, const std::vector<int32_t>* prompt,
                        const tiercel_sampling& sampling, Results* results) {
  Entry entry = {&session.handle(), sampling, prompt};
  entry.on_token = [results](const Token& token) {
    results->on_token(token);
    return GoesOn();
  };
  entry.progress = Watched(results->on_read);
  sessions_.insert(session.handle().get());
  return Tried([&] {
    queue_.add(std::move(entry), [results](const std::exception_ptr& thrown) {
      results->on_end(StatusOf(thrown));
    });
  });
}

void Queue::CancelOnSignalIn(absl::FunctionRef<void()> wait) const {
  const CancelOnSignal cancel({sessions_.begin(), sessions_.end()});
  wait();
}

}  // namespace tiercel::cli
