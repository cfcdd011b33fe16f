#include "lib/documents/child_process.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tiercel::document {
namespace {

using ::testing::HasSubstr;

constexpr ChildLimits kLimits = {uint64_t{1} << 30, 20, 60, 1 << 20};

struct Ran {
  ChildEnd end;
  std::string output;
};

Ran RunHere(const std::vector<std::string>& command, std::string_view input,
            const ChildLimits& limits = kLimits) {
  Ran ran;
  std::vector<std::string> found = command;
  found[0] = FindProgram(command[0]).value_or("/no such program");
  ran.end = RunChild(found, input, limits,
                     [&](std::string_view bytes) { ran.output += bytes; });
  return ran;
}

TEST(ChildProcessTest, InputOutputErrorsAndStatus) {
  const std::string long_input(300'000, 'x');
  const Ran cat = RunHere({"cat"}, long_input);
  EXPECT_EQ(cat.end.kind, ChildEnd::Kind::kExited);
  EXPECT_EQ(cat.end.code, 0);
  EXPECT_EQ(cat.output, long_input);
  EXPECT_EQ(RunHere({"cat", "/proc/self/fd/0"}, "by path").output, "by path");
  const Ran failed = RunHere({"cat", "/nowhere"}, "");
  EXPECT_EQ(failed.end.kind, ChildEnd::Kind::kExited);
  EXPECT_EQ(failed.end.code, 1);
  EXPECT_THAT(failed.end.errors, HasSubstr("/nowhere"));
}

TEST(ChildProcessTest, NoShellReadsTheArguments) {
  EXPECT_EQ(RunHere({"echo", "$HOME; *", "`ls`"}, "").output,
            "$HOME; * `ls`\n");
  EXPECT_EQ(RunHere({"pwd"}, "").output, "/\n");
  EXPECT_EQ(RunHere({"env"}, "").output, "LC_ALL=C.UTF-8\n");
}

TEST(ChildProcessTest, NothingElseIsInherited) {
  // The descriptor by which `ls` lists the folder counts, too.
  const int kept = dup(STDOUT_FILENO);
  EXPECT_EQ(RunHere({"ls", "/proc/self/fd"}, "").output, "0\n1\n2\n3\n");
  close(kept);
}

// The host program's blocked and ignored signals, and its wish for core files,
// are not the child's.
TEST(ChildProcessTest, SignalsAndCoreFilesAreAsUsual) {
  struct rlimit cores;
  ASSERT_EQ(getrlimit(RLIMIT_CORE, &cores), 0);
  const struct rlimit most = {cores.rlim_max, cores.rlim_max};
  setrlimit(RLIMIT_CORE, &most);
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto usual = signal(SIGPIPE, SIG_IGN);
  const std::string status = RunHere({"cat", "/proc/self/status"}, "").output;
  const std::string limits = RunHere({"cat", "/proc/self/limits"}, "").output;
  signal(SIGPIPE, usual);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  setrlimit(RLIMIT_CORE, &cores);
  EXPECT_THAT(status, HasSubstr("SigBlk:\t0000000000000000\n"));
  const size_t ignored = status.find("SigIgn:\t");
  ASSERT_NE(ignored, std::string::npos);
  EXPECT_EQ(std::stoull(status.substr(ignored + 8, 16), nullptr, 16) &
                uint64_t{1} << (SIGPIPE - 1),
            0u);
  EXPECT_THAT(limits, testing::ContainsRegex("Max core file size  *0  *0 "));
}

// Returns true if a process is there and not merely unburied.
bool IsAlive(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(") ");
  return name_end != std::string::npos && line[name_end + 2] != 'Z';
}

TEST(ChildProcessTest, AChildDiesWithTheProgram) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string shell = FindProgram("sh").value_or("");
  const pid_t program = fork();
  if (program == 0) {
    RunChild({shell, "-c", "echo $$; exec sleep 100"}, "", kLimits,
             [&](std::string_view bytes) {
               if (write(ends[1], bytes.data(), bytes.size()) < 0) _exit(1);
             });
    _exit(0);
  }
  close(ends[1]);
  char text[32] = {};
  ASSERT_GT(read(ends[0], text, sizeof(text) - 1), 0);
  close(ends[0]);
  const auto child = static_cast<pid_t>(std::stoi(text));
  EXPECT_TRUE(IsAlive(child));
  kill(program, SIGKILL);
  waitpid(program, nullptr, 0);
  for (int i = 0; i < 500 && IsAlive(child); ++i) usleep(10'000);
  EXPECT_FALSE(IsAlive(child));
  kill(child, SIGKILL);
}

TEST(ChildProcessTest, SignalsDoNotEndTheReading) {
  struct sigaction action = {}, before;
  action.sa_handler = [](int) {};  // and no SA_RESTART
  sigaction(SIGUSR2, &action, &before);
  std::atomic<bool> over{false};
  const pthread_t reader = pthread_self();
  std::thread sender([&] {
    while (!over) {
      pthread_kill(reader, SIGUSR2);
      usleep(1000);
    }
  });
  // The output comes late, and the end later.
  const Ran ran = RunHere(
      {"sh", "-c", "sleep 0.2; echo here; exec sleep 0.2 >&- 2>&-"}, "");
  over = true;
  sender.join();
  sigaction(SIGUSR2, &before, nullptr);
  EXPECT_EQ(ran.end.kind, ChildEnd::Kind::kExited);
  EXPECT_EQ(ran.end.code, 0);
  EXPECT_EQ(ran.output, "here\n");
}

TEST(ChildProcessTest, AMissingProgramIsAStatus) {
  EXPECT_EQ(FindProgram("no such program"), std::nullopt);
  EXPECT_EQ(RunHere({"no such program"}, "").end.code, 127);
}

TEST(ChildProcessTest, OnlyAbsoluteFoldersAreSearched) {
  namespace fs = std::filesystem;
  const std::string path = getenv("PATH");
  const std::string cat = FindProgram("cat").value_or("");
  const fs::path before = fs::current_path();
  const fs::path folder = testing::TempDir() + "child_process_test_folder";
  fs::create_directories(folder / "bin");
  for (const char* name : {"cat", "bin/cat"}) {
    fs::remove(folder / name);
    fs::create_symlink(cat, folder / name);
  }
  fs::current_path(folder);
  setenv("PATH", "bin::./bin:.", 1);
  EXPECT_EQ(FindProgram("cat"), std::nullopt);
  setenv("PATH", path.c_str(), 1);
  fs::current_path(before);
  fs::remove_all(folder);
  EXPECT_NE(FindProgram("cat"), std::nullopt);
}

TEST(ChildProcessTest, WallTimeIsLimited) {
  ChildLimits limits = kLimits;
  limits.wall_seconds = 0.2;
  EXPECT_EQ(RunHere({"sleep", "1000"}, "", limits).end.kind,
            ChildEnd::Kind::kTimedOut);
}

TEST(ChildProcessTest, WallTimeIsLimitedBehindTheOutput) {
  ChildLimits limits = kLimits;
  limits.wall_seconds = 0.2;
  EXPECT_EQ(RunHere({"sh", "-c", "exec sleep 2 >&- 2>&-"}, "", limits).end.kind,
            ChildEnd::Kind::kTimedOut);
}

TEST(ChildProcessTest, ProcessorTimeIsLimited) {
  ChildLimits limits = kLimits;
  limits.cpu_seconds = 1;
  EXPECT_EQ(RunHere({"sha1sum", "/dev/zero"}, "", limits).end.kind,
            ChildEnd::Kind::kTimedOut);
}

TEST(ChildProcessTest, OutputIsLimited) {
  const Ran ran = RunHere({"yes"}, "");
  EXPECT_EQ(ran.end.kind, ChildEnd::Kind::kTooMuchOutput);
  EXPECT_LE(ran.output.size(), kLimits.output_bytes);
}

TEST(ChildProcessTest, MemoryIsLimited) {
  ChildLimits limits = kLimits;
  limits.memory_bytes = 64 << 20;
  const Ran ran =
      RunHere({"dd", "if=/dev/zero", "bs=512M", "count=1"}, "", limits);
  EXPECT_EQ(ran.end.kind, ChildEnd::Kind::kExited);
  EXPECT_THAT(ran.end.errors, HasSubstr("memory exhausted"));
}

TEST(ChildProcessTest, NoFilesAreWritten) {
  const std::string file = testing::TempDir() + "child_process_test_file";
  const Ran ran = RunHere({"cp", "/proc/self/fd/0", file}, "x");
  EXPECT_FALSE(ran.end.kind == ChildEnd::Kind::kExited && ran.end.code == 0);
  unlink(file.c_str());
}

// ---- Programs that wait for all their children ----

TEST(ChildProcessTest, TheStatusMayBeIgnored) {
  signal(SIGCHLD, SIG_IGN);
  const std::string long_input(300'000, 'x');
  const Ran cat = RunHere({"cat"}, long_input);
  const Ran failed = RunHere({"cat", "/nowhere"}, "");
  ChildLimits limits = kLimits;
  limits.wall_seconds = 0.2;
  const Ran late = RunHere({"sleep", "1000"}, "", limits);
  signal(SIGCHLD, SIG_DFL);
  EXPECT_EQ(cat.end.kind, ChildEnd::Kind::kUnseen);
  EXPECT_EQ(cat.output, long_input);
  EXPECT_EQ(failed.end.kind, ChildEnd::Kind::kUnseen);
  EXPECT_THAT(failed.end.errors, HasSubstr("/nowhere"));
  EXPECT_EQ(late.end.kind, ChildEnd::Kind::kTimedOut);
}

TEST(ChildProcessTest, OthersMayWaitForAnyChild) {
  std::atomic<bool> over{false};
  std::thread reaper([&] {
    while (!over) {
      waitpid(-1, nullptr, WNOHANG);
    }
  });
  for (int i = 0; i < 20; ++i) {
    const Ran cat = RunHere({"cat"}, "text");
    EXPECT_TRUE(cat.end.kind == ChildEnd::Kind::kUnseen ||
                cat.end.kind == ChildEnd::Kind::kExited);
    EXPECT_EQ(cat.end.code, 0);
    EXPECT_EQ(cat.output, "text");
  }
  over = true;
  reaper.join();
}

}  // namespace
}  // namespace tiercel::document
