#include "lib/documents/child_process.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <atomic>
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

TEST(ChildProcessTest, AMissingProgramIsAStatus) {
  EXPECT_EQ(FindProgram("no such program"), std::nullopt);
  EXPECT_EQ(RunHere({"no such program"}, "").end.code, 127);
}

TEST(ChildProcessTest, OnlyAbsoluteFoldersAreSearched) {
  const std::string path = getenv("PATH");
  setenv("PATH", "bin::./bin", 1);
  EXPECT_EQ(FindProgram("cat"), std::nullopt);
  setenv("PATH", path.c_str(), 1);
  EXPECT_NE(FindProgram("cat"), std::nullopt);
}

TEST(ChildProcessTest, WallTimeIsLimited) {
  ChildLimits limits = kLimits;
  limits.wall_seconds = 0.2;
  EXPECT_EQ(RunHere({"sleep", "1000"}, "", limits).end.kind,
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
