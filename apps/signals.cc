#include "apps/signals.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace tiercel::cli {
namespace {

// Lock-free atomics are what a handler may touch.
std::atomic<int> received{0};
std::atomic<tiercel_session*> running{nullptr};
static_assert(std::atomic<int>::is_always_lock_free);
static_assert(std::atomic<tiercel_session*>::is_always_lock_free);

void OnSignal(int signal_number) {
  if (received.exchange(signal_number) != 0) _exit(128 + signal_number);
  tiercel_session* session = running.load();
  if (session != nullptr) tiercel_cancel(session);
}

}  // namespace

void InstallSignalHandlers() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  sigemptyset(&action.sa_mask);
  // No SA_RESTART: a read of a terminal or a pipe must return.
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

void HoldStandardStreams() {
  // The lowest free number is given out first. The wrong direction on purpose.
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) == -1) {
      const int held = open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
      if (held != fd && held >= 0) close(held);
    }
  }
}

int SignalReceived() { return received.load(); }

bool WaitToRead(int fd) {
  // ppoll lets signals in only while it waits: none is lost between looking at
  // `received` and going to sleep.
  sigset_t stops, before;
  sigemptyset(&stops);
  sigaddset(&stops, SIGINT);
  sigaddset(&stops, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &stops, &before);
  pollfd readable = {fd, POLLIN, 0};
  while (received.load() == 0 &&
         ppoll(&readable, 1, /*timeout=*/nullptr, &before) == -1 &&
         errno == EINTR) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return received.load() == 0;
}

CancelOnSignal::CancelOnSignal(tiercel_session* session) {
  running.store(session);
}

CancelOnSignal::~CancelOnSignal() { running.store(nullptr); }

}  // namespace tiercel::cli
