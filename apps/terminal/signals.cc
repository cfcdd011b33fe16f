#include "apps/terminal/signals.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <string_view>
#include <utility>

#include "apps/terminal/screen.h"

namespace tiercel::cli {
namespace {

// A signal handler may touch lock-free atomics alone.
std::atomic<int> received{0};
// The sessions whose work a signal cancels; null: none.
constexpr size_t kMostRunning = 64;
std::array<std::atomic<tiercel_session*>, kMostRunning> running;
static_assert(std::atomic<int>::is_always_lock_free);
static_assert(std::atomic<bool>::is_always_lock_free);
static_assert(std::atomic<tiercel_session*>::is_always_lock_free);

std::atomic<int> to_keep{0};
std::atomic<bool> counts{false};  // a CountSignals lives
std::atomic<int> counted{0};
std::atomic<int> last_counted{0};
std::atomic<bool> has_output{false};
std::atomic<bool> is_kept{false};
bool wants_json = false;

// Wakes the thread that waits to read, since a signal may meet any thread.
int wake_pipe[2] = {-1, -1};

// Writes as much of `text` as fits without blocking, since it runs in a
// handler.
void Say(int fd, std::string_view text) {
  pollfd file = {fd, POLLOUT, 0};
  if (poll(&file, 1, /*timeout=*/0) != 1) return;
  [[maybe_unused]] const ssize_t written = write(fd, text.data(), text.size());
}

[[noreturn]] void EndNow(int signal_number) {
  if (!wants_json) {
    Say(STDERR_FILENO, StatusEraser());
    Say(STDERR_FILENO, "tiercel: ");
    Say(STDERR_FILENO, InterruptedMessage());
    Say(STDERR_FILENO, "\n");
  } else if (!has_output.load()) {
    Say(STDOUT_FILENO, R"({"error":{"code":"interrupted","message":")");
    Say(STDOUT_FILENO, InterruptedMessage());
    Say(STDOUT_FILENO, "\"}}\n");
  }
  _exit(128 + signal_number);
}

void OnSignal(int signal_number) {
  if (counts.load()) {
    last_counted.store(signal_number);
    if (counted.fetch_add(1) >= 2) _exit(128 + signal_number);
    WakeReader();
    return;
  }
  if (received.exchange(signal_number) != 0) _exit(128 + signal_number);
  if (to_keep.load() == 0) EndNow(signal_number);
  for (const std::atomic<tiercel_session*>& one : running) {
    tiercel_session* const session = one.load();
    if (session != nullptr) tiercel_session_cancel(session);
  }
  WakeReader();
}

}  // namespace

void InstallSignalHandlers(bool json) {
  wants_json = json;
  // Without the pipe, a signal that meets another thread is noticed only at the
  // next key.
  if (pipe2(wake_pipe, O_NONBLOCK | O_CLOEXEC) == -1) {
    wake_pipe[0] = wake_pipe[1] = -1;
  }
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  sigemptyset(&action.sa_mask);
  // No SA_RESTART: a read of a terminal or a pipe must return.
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  // If the parent ignores SIGCHLD, children would end without a status.
  signal(SIGCHLD, SIG_DFL);
}

void HoldStandardStreams() {
  // open() gives out the lowest free number. Each stream has the wrong
  // direction on purpose, so that its use fails.
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) == -1) {
      const int held = open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
      if (held != fd && held >= 0) close(held);
    }
  }
}

int SignalReceived() { return received.load(); }

void WakeReader() {
  const int before = errno;  // the interrupted code's
  const char byte = 0;
  // A pipe that is full wakes as well.
  [[maybe_unused]] const ssize_t written = write(wake_pipe[1], &byte, 1);
  errno = before;
}

bool ForgetInterrupt() {
  int interrupt = SIGINT;
  return received.compare_exchange_strong(interrupt, 0);
}

bool WaitToRead(int fd, const std::function<void()>& on_wake) {
  pollfd files[] = {{fd, POLLIN, 0}, {wake_pipe[0], POLLIN, 0}};
  for (;;) {
    // The pipe is emptied before `received` is read, so that no signal is lost
    // in between.
    char bytes[64];
    while (read(wake_pipe[0], bytes, sizeof(bytes)) > 0) {
    }
    if (received.load() != 0) return false;
    if (on_wake) on_wake();
    const int ready = poll(files, 2, /*timeout=*/-1);
    const bool woken = ready == -1 ? errno == EINTR : files[0].revents == 0;
    if (!woken) return received.load() == 0;
  }
}

bool WaitToWrite(int fd) {
  constexpr int kMomentMs = 100;
  pollfd files[] = {{fd, POLLOUT, 0}, {wake_pipe[0], POLLIN, 0}};
  for (;;) {
    char bytes[64];
    while (read(wake_pipe[0], bytes, sizeof(bytes)) > 0) {
    }
    const bool ends = received.load() != 0;
    const int ready = poll(files, 2, ends ? kMomentMs : -1);
    if (ready > 0 && files[0].revents != 0) return true;
    if (ready == 0) return false;
  }
}

void NoteOutput() { has_output.store(true); }

void NoteKept(bool kept) { is_kept.store(kept); }

std::string_view InterruptedMessage() {
  return is_kept.load() ? "interrupted; what was read is kept, and the same "
                          "command goes on there"
                        : "interrupted";
}

KeepOnSignal::KeepOnSignal() { to_keep.fetch_add(1); }

KeepOnSignal::~KeepOnSignal() { to_keep.fetch_sub(1); }

CountSignals::CountSignals() { counts.store(true); }

CountSignals::~CountSignals() {
  counts.store(false);
  if (counted.load() > 0) received.store(last_counted.load());
}

int SignalsCounted() { return counted.load(); }

int SignalFile() { return wake_pipe[0]; }

CancelOnSignal::CancelOnSignal(std::vector<tiercel_session*> sessions)
    : sessions_(std::move(sessions)) {
  for (size_t i = 0; i < std::min(sessions_.size(), kMostRunning); ++i) {
    running[i].store(sessions_[i]);
  }
}

CancelOnSignal::~CancelOnSignal() {
  for (std::atomic<tiercel_session*>& one : running) one.store(nullptr);
  for (tiercel_session* const session : sessions_) {
    tiercel_session_clear_cancel(session);
  }
}

}  // namespace tiercel::cli
