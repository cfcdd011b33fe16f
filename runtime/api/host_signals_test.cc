// Signals of a program that embeds the library are its own: its own threads
// handle them.

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "include/tiercel_lab.h"
#include "runtime/api/api_fixture_for_test.h"

namespace {

using tiercel::api_test::kModel;
using tiercel::api_test::kSmallDevice;
using tiercel::api_test::Sized;

// The kinds of sessions, by the threads that they start.
enum class Kind { kInPlace, kSimulated, kRanks };
constexpr Kind kKinds[] = {Kind::kInPlace, Kind::kSimulated, Kind::kRanks};

tiercel_model* Open(Kind kind) {
  auto error = Sized<tiercel_error>();
  auto params = Sized<tiercel_model_params>();
  params.path = kModel;
  params.threads = 4;
  if (kind != Kind::kInPlace) params.simulation = &kSmallDevice;
  if (kind == Kind::kRanks) params.tensor_parallel = 2;
  tiercel_model* model = nullptr;
  EXPECT_EQ(tiercel_model_open(&params, &model, &error), TIERCEL_OK)
      << error.message;
  return model;
}

// Creates a session with the folder `texts`, or without one if that is empty.
tiercel_session* Create(tiercel_model* model, const std::string& texts) {
  auto error = Sized<tiercel_error>();
  auto params = Sized<tiercel_session_params>();
  params.context = 2000;
  if (!texts.empty()) params.prompt_cache_dir = texts.c_str();
  tiercel_session* session = nullptr;
  EXPECT_EQ(tiercel_session_create(model, &params, &session, &error),
            TIERCEL_OK)
      << error.message;
  return session;
}

std::vector<int32_t> Prompt() {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 1500; ++i) ids.push_back(3 + i * 11 % 200);
  return ids;
}

class HostSignalsTest : public testing::Test {
 protected:
  HostSignalsTest() { EXPECT_NE(mkdtemp(folder_.data()), nullptr); }
  ~HostSignalsTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_ = testing::TempDir() + "/signals_XXXXXX";
};

std::set<std::string> Threads() {
  std::set<std::string> threads;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/self/task")) {
    threads.insert(task.path());
  }
  return threads;
}

// The signals that a thread blocks, one bit each; all if the thread has ended.
uint64_t HeldBy(const std::string& task) {
  std::ifstream status(task + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("SigBlk:", 0) == 0) {
      return std::stoull(line.substr(7), nullptr, 16);
    }
  }
  return ~uint64_t{0};
}

// Counts threads that are not `known`, and those that take signals.
struct Watch {
  std::set<std::string> known = Threads();
  size_t seen = 0;  // most at once
  size_t takes_signals = 0;

  static int Look(void* watch, uint64_t, uint64_t) {
    auto& self = *static_cast<Watch*>(watch);
    size_t now = 0;
    for (const std::string& task : Threads()) {
      if (self.known.count(task) > 0) continue;
      ++now;
      const uint64_t held = HeldBy(task);
      for (const int signal : {SIGINT, SIGTERM, SIGALRM, SIGPROF, SIGCHLD,
                               SIGUSR1, SIGXFSZ, SIGPIPE}) {
        if ((held >> (signal - 1) & 1) == 0) ++self.takes_signals;
      }
    }
    self.seen = std::max(self.seen, now);
    return 0;
  }
};

TEST_F(HostSignalsTest, EveryThreadOfTheLibraryTakesNone) {
  const std::vector<int32_t> ids = Prompt();
  for (const Kind kind : kKinds) {
    Watch watch;
    tiercel_model* const model = Open(kind);
    tiercel_session* const session = Create(model, folder_ + "/texts");
    auto error = Sized<tiercel_error>();
    EXPECT_EQ(tiercel_session_prefill(session, ids.data(), ids.size(),
                                      Watch::Look, &watch, &error),
              TIERCEL_OK)
        << error.message;
    auto sampling = Sized<tiercel_sampling>();
    sampling.max_tokens = 5;
    sampling.ignore_eos = 1;
    EXPECT_EQ(tiercel_session_generate(
                  session, &sampling,
                  [](void* of, const tiercel_token*) {
                    return Watch::Look(of, 0, 0);
                  },
                  &watch, &error),
              TIERCEL_OK)
        << error.message;
    tiercel_session_free(session);
    tiercel_model_free(model);
    EXPECT_GE(watch.seen, kind == Kind::kInPlace ? 3u : 4u);
    EXPECT_EQ(watch.takes_signals, 0u) << static_cast<int>(kind);
    std::filesystem::remove_all(folder_ + "/texts");
  }
}

std::atomic<int> handled{0};
std::atomic<bool> handled_elsewhere{false};
pthread_t own_thread;

// If the program's only thread blocks a signal, it stays pending whatever the
// library does.
TEST_F(HostSignalsTest, ASignalWaitsForTheProgram) {
  own_thread = pthread_self();
  struct sigaction action = {};
  action.sa_handler = [](int) {
    ++handled;
    if (pthread_equal(pthread_self(), own_thread) == 0) {
      handled_elsewhere = true;
    }
  };
  struct sigaction before;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  sigset_t usr1;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  const std::vector<int32_t> ids = Prompt();
  for (const Kind kind : kKinds) {
    handled = 0;
    tiercel_model* const model = Open(kind);
    tiercel_session* const session = Create(model, "");
    pthread_sigmask(SIG_BLOCK, &usr1, nullptr);
    EXPECT_EQ(tiercel_session_prefill(
                  session, ids.data(), ids.size(),
                  [](void*, uint64_t, uint64_t) {
                    kill(getpid(), SIGUSR1);
                    return 0;
                  },
                  nullptr, nullptr),
              TIERCEL_OK);
    EXPECT_EQ(handled, 0) << static_cast<int>(kind);
    pthread_sigmask(SIG_UNBLOCK, &usr1, nullptr);
    EXPECT_EQ(handled, 1);
    EXPECT_FALSE(handled_elsewhere);
    tiercel_session_free(session);
    tiercel_model_free(model);
  }
  sigaction(SIGUSR1, &before, nullptr);
}

// ---- Files that may not grow ----

// While it lives, no file of the process may grow beyond a page.
class SmallFiles {
 public:
  SmallFiles() {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small = {4096, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallFiles() { setrlimit(RLIMIT_FSIZE, &before_); }
  SmallFiles(const SmallFiles&) = delete;
  SmallFiles& operator=(const SmallFiles&) = delete;

 private:
  rlimit before_;
};

// Writes more than such a file may have, on the calling thread.
void WriteTooMuch(const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  EXPECT_EQ(pwrite(file, "x", 1, 1 << 20), -1);
  EXPECT_EQ(errno, EFBIG);
  close(file);
}

// Makes every call that writes something; their results do not matter.
void WriteEverywhere(const std::string& folder, tiercel_progress progress) {
  const std::vector<int32_t> ids = Prompt();
  for (const Kind kind : kKinds) {
    tiercel_model* const model = Open(kind);
    auto params = Sized<tiercel_session_params>();
    params.context = 2000;
    const std::string texts = folder + "/texts";
    params.prompt_cache_dir = texts.c_str();
    tiercel_session* session = nullptr;
    const SmallFiles small;
    // The host tier of a simulated device is a file in memory.
    if (tiercel_session_create(model, &params, &session, nullptr) ==
        TIERCEL_OK) {
      tiercel_session_prefill(session, ids.data(), ids.size(), progress,
                              nullptr, nullptr);
    }
    tiercel_session_free(session);
    tiercel_model_free(model);
  }
}

// A machine without memory for its pages writes them, too, and measures how
// fast they come.
void WritePages(const std::string& folder) {
  auto error = Sized<tiercel_error>();
  auto model_params = Sized<tiercel_model_params>();
  model_params.path = kModel;
  model_params.simulation = &kSmallDevice;
  model_params.host_memory_bytes = 1;
  tiercel_model* model = nullptr;
  ASSERT_EQ(tiercel_model_open(&model_params, &model, &error), TIERCEL_OK)
      << error.message;
  auto params = Sized<tiercel_session_params>();
  params.context = 8000;
  const std::string texts = folder + "/pages";
  params.prompt_cache_dir = texts.c_str();
  params.cache_dir = texts.c_str();
  tiercel_session* session = nullptr;
  ASSERT_EQ(tiercel_session_create(model, &params, &session, &error),
            TIERCEL_OK)
      << error.message;
  const std::vector<int32_t> ids(6000, 7);
  {
    const SmallFiles small;
    EXPECT_NE(tiercel_session_prefill(session, ids.data(), ids.size(), nullptr,
                                      nullptr, &error),
              TIERCEL_OK);
    tiercel_measure(model, &params, nullptr, nullptr, nullptr, &error);
  }
  EXPECT_EQ(tiercel_session_length(session), 0u);
  EXPECT_EQ(tiercel_session_prefill(session, ids.data(), ids.size(), nullptr,
                                    nullptr, &error),
            TIERCEL_OK)
      << error.message;
  tiercel_session_free(session);
  tiercel_model_free(model);
}

// Expects `body` to end in a process of its own, with the default signal
// handlers, and to find nothing wrong.
void InAProcess(const std::function<void()>& body) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    signal(SIGXFSZ, SIG_DFL);
    body();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_FALSE(WIFSIGNALED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(HostSignalsTest, AFileThatMayNotGrowEndsNoProgram) {
  InAProcess([this] {
    WriteEverywhere(folder_, nullptr);
    WritePages(folder_);
  });
}

TEST_F(HostSignalsTest, NoHandlerHearsOfTheLibrarysFiles) {
  InAProcess([this] {
    static std::atomic<int> heard{0};
    signal(SIGXFSZ, [](int) { ++heard; });
    sigset_t held;
    WriteEverywhere(folder_, [](void*, uint64_t, uint64_t) {
      EXPECT_EQ(heard, 0);
      return 0;
    });
    EXPECT_EQ(heard, 0);
    pthread_sigmask(SIG_BLOCK, nullptr, &held);
    EXPECT_EQ(sigismember(&held, SIGXFSZ), 0);
    // The program hears its own signals, in callbacks and elsewhere.
    const std::string path = folder_ + "/file";
    tiercel_model* const model = Open(Kind::kInPlace);
    tiercel_session* const session = Create(model, "");
    const SmallFiles small;
    const int32_t id = 7;
    EXPECT_EQ(tiercel_session_prefill(
                  session, &id, 1,
                  [](void* of, uint64_t, uint64_t) {
                    heard = 0;
                    WriteTooMuch(*static_cast<const std::string*>(of));
                    EXPECT_EQ(heard, 1);
                    return 0;
                  },
                  const_cast<std::string*>(&path), nullptr),
              TIERCEL_OK);
    WriteTooMuch(path);
    EXPECT_EQ(heard, 2);
    tiercel_session_free(session);
    tiercel_model_free(model);
  });
}

// A program that blocks the signal has its own one pending, and no other.
TEST_F(HostSignalsTest, WhatTheProgramHoldsBackIsAsItWas) {
  InAProcess([this] {
    static std::atomic<int> heard{0};
    signal(SIGXFSZ, [](int) { ++heard; });
    sigset_t file_size;
    sigemptyset(&file_size);
    sigaddset(&file_size, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &file_size, nullptr);
    WriteEverywhere(folder_, nullptr);
    sigset_t pending;
    sigpending(&pending);
    EXPECT_EQ(sigismember(&pending, SIGXFSZ), 0);
    {
      const SmallFiles small;
      WriteTooMuch(folder_ + "/file");
    }
    WriteEverywhere(folder_, nullptr);
    sigpending(&pending);
    EXPECT_EQ(sigismember(&pending, SIGXFSZ), 1);
    EXPECT_EQ(heard, 0);
    pthread_sigmask(SIG_UNBLOCK, &file_size, nullptr);
    EXPECT_EQ(heard, 1);
  });
}

}  // namespace
