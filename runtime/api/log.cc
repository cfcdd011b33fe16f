#include "runtime/api/log.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "runtime/api/boundary.h"

namespace tiercel {

void Log::Note(int32_t level, std::string sentence) {
  const std::lock_guard<std::mutex> lock(mutex_);
  noted_.push_back({level, std::move(sentence)});
}

void Log::NoteWarnings(const std::vector<std::string>& warnings) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const std::string& warning : warnings) {
    if (!warnings_.insert(warning).second) continue;
    noted_.push_back({TIERCEL_LOG_WARNING, warning});
  }
}

void Log::Tell(CallersThread& thread) {
  for (;;) {
    Line line;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (noted_.empty()) return;
      line = std::move(noted_.front());
      noted_.pop_front();
    }
    (void)Guarded([&] {
      thread.Call(log_, user_data_, line.level, line.sentence.c_str());
    });
  }
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): it keeps the log alive
absl::Status Told(std::shared_ptr<Log> log, CallersThread& thread,
                  absl::Status status) {
  if (log == nullptr) return status;
  if (!status.ok() && ClassOf(status) != ErrorClass::kCancelled) {
    log->Note(TIERCEL_LOG_ERROR,
              absl::StrCat(CodeOf(status), ": ", status.message()));
  }
  log->Tell(thread);
  return status;
}

}  // namespace tiercel
