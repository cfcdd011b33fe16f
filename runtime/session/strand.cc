#include "runtime/session/strand.h"

#include <unistd.h>

#include <system_error>
#include <utility>

#include "kernels/system/thread.h"
#include "lib/status/error.h"

namespace tiercel {

absl::StatusOr<std::unique_ptr<Strand>> Strand::Create(
    std::function<void()> body) {
  std::unique_ptr<Strand> strand(new Strand(std::move(body)));
  try {
    strand->thread_ = StartThread([raw = strand.get()] { raw->Run(); });
  } catch (const std::system_error&) {
    return MemoryError("no_thread",
                       "batch: the system gives no thread for a session");
  }
  return strand;
}

Strand::Strand(std::function<void()> body)
    : body_(std::move(body)), process_(getpid()) {}

Strand::~Strand() {
  if (IsForked()) {
    // The thread exists in the parent alone. Its handle is left behind.
    [[maybe_unused]] auto* const parents = new auto(std::move(thread_));
    return;
  }
  if (!thread_.joinable()) return;
  if (!begun_) resumed_.release();
  thread_.join();
}

bool Strand::IsForked() const { return getpid() != process_; }

void Strand::Run() {
  resumed_.acquire();
  if (!begun_) return;
  try {
    body_();
  } catch (...) {
    thrown_ = std::current_exception();
  }
  ended_ = true;
  yielded_.release();
}

void Strand::Resume() {
  if (ended_ || IsForked()) return;
  begun_ = true;
  resumed_.release();
  yielded_.acquire();
  if (thrown_ != nullptr) {
    std::rethrow_exception(std::exchange(thrown_, nullptr));
  }
}

void Strand::Finish() noexcept {
  while (!ended()) {
    try {
      Resume();
    } catch (...) {
    }
  }
}

void Strand::Yield() {
  yielded_.release();
  resumed_.acquire();
}

}  // namespace tiercel
