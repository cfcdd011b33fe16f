#include "apps/commands/whole_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "gtest/gtest.h"

namespace tiercel::cli {
namespace {

// The calls that make a file last, in their order. The next ones fail with
// `error`.
struct Calls {
  std::string made;
  int failing = 0;
  int error = EINTR;

  bool Fails(const char* name) {
    made += name;
    if (failing == 0) return false;
    --failing;
    errno = error;
    return true;
  }
};
Calls calls;

}  // namespace
}  // namespace tiercel::cli

// These stand for the system's in this program.
extern "C" int fdatasync(int fd) {
  if (tiercel::cli::calls.Fails("data ")) return -1;
  return static_cast<int>(syscall(SYS_fdatasync, fd));
}
extern "C" int fsync(int fd) {
  if (tiercel::cli::calls.Fails("folder ")) return -1;
  return static_cast<int>(syscall(SYS_fsync, fd));
}
extern "C" int rename(const char* from, const char* to) noexcept {
  tiercel::cli::calls.made += "rename ";
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to,
                                  /*flags=*/0));
}

namespace tiercel::cli {
namespace {

namespace fs = std::filesystem;

class WholeFileTest : public testing::Test {
 protected:
  WholeFileTest() {
    fs::remove_all(folder_);
    fs::create_directory(folder_);
    std::ofstream(path_) << "before";
  }
  ~WholeFileTest() override {
    calls = {};
    fs::remove_all(folder_);
  }
  // Writes the file anew; the first `failing` calls fail with `error`.
  absl::Status Write(int failing = 0, int error = EINTR) {
    absl::StatusOr<WholeFile> file = WholeFile::Create(path_, 0600);
    if (!file.ok()) return file.status();
    if (absl::Status s = file->Write("after"); !s.ok()) return s;
    calls = {.made = "", .failing = failing, .error = error};
    return file->Finish();
  }
  std::string Text() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }
  size_t Files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), {}));
  }

  const std::string folder_ = testing::TempDir() + "whole_file_test";
  const std::string path_ = folder_ + "/file";
};

// Its bytes are on the disk before it gets its name, and the name before the
// call ends.
TEST_F(WholeFileTest, LastsBehindALossOfPower) {
  EXPECT_TRUE(Write().ok());
  EXPECT_EQ(calls.made, "data rename folder ");
  EXPECT_EQ(Text(), "after");
  EXPECT_EQ(Files(), 1u);
}

TEST_F(WholeFileTest, ASignalThatInterruptsChangesNothing) {
  EXPECT_TRUE(Write(/*failing=*/3).ok());
  EXPECT_EQ(calls.made, "data data data data rename folder ");
  EXPECT_EQ(Text(), "after");
}

TEST_F(WholeFileTest, IsAsBeforeIfTheDiskFails) {
  EXPECT_FALSE(Write(/*failing=*/1, EIO).ok());
  EXPECT_EQ(calls.made, "data ");
  EXPECT_EQ(Text(), "before");
  EXPECT_EQ(Files(), 1u);
}

}  // namespace
}  // namespace tiercel::cli
