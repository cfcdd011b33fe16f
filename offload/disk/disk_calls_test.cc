#include "offload/disk/disk_calls.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "gtest/gtest.h"
#include "kernels/system/faults.h"
#include "offload/disk/faulty_disk_for_test.h"

namespace tiercel {
namespace {

class DiskCallsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = open(path_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_GE(folder_, 0);
  }
  void TearDown() override { close(folder_); }

  int Open(const char* name) {
    return SystemDisk().Open(folder_, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  }
  // A file of the program around the library, which has the lowest number that
  // is free.
  int OpenOfTheProgram() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

  FolderForTest path_;
  int folder_ = -1;
};

// A file is made longer even if its file system cannot reserve room, or a
// signal comes too often; other errors are the caller's.
TEST_F(DiskCallsTest, RoomIsReservedWhereItCanBe) {
  for (const int error : {0, EINTR, ENOSYS, EOPNOTSUPP, ENOSPC, EIO}) {
    const int file = Open("file");
    ASSERT_GE(file, 0);
    ASSERT_EQ(ftruncate(file, 0), 0);
    const Faults faults(Callee::kDisk, [&](const Operation& operation) {
      return operation.call == "reserve" ? error : 0;
    });
    const int allocated = SystemDisk().Allocate(file, 40 << 20);
    const bool fails = error == ENOSPC || error == EIO;
    EXPECT_EQ(allocated, fails ? -1 : 0) << error;
    EXPECT_TRUE(!fails || errno == error);
    struct stat status;
    ASSERT_EQ(fstat(file, &status), 0);
    EXPECT_EQ(status.st_size, 40 << 20);
    EXPECT_EQ(SystemDisk().Close(file), 0);
  }
}

// Returns the exit status of a child in which `body` runs.
template <typename Body>
int InAChild(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

int IsOpen(int file) { return fcntl(file, F_GETFD) >= 0 ? 1 : 0; }

TEST_F(DiskCallsTest, AForkClosesTheFilesThatAreOpen) {
  const int file = Open("file");
  ASSERT_GE(file, 0);
  EXPECT_EQ(InAChild([&] { return IsOpen(file); }), 0);
  EXPECT_EQ(IsOpen(file), 1);
  SystemDisk().Close(file);
}

// The number of a file that was closed may be another's by then.
TEST_F(DiskCallsTest, AForkClosesNoFileOfTheProgram) {
  const int file = Open("file");
  SystemDisk().Close(file);
  const int others = OpenOfTheProgram();
  ASSERT_EQ(others, file);
  EXPECT_EQ(InAChild([&] { return 1 - IsOpen(others); }), 0);
  close(others);
}

TEST_F(DiskCallsTest, AForkOfAForkClosesNoFileOfTheProgram) {
  const int file = Open("file");
  EXPECT_EQ(InAChild([&] {
              const int others = OpenOfTheProgram();
              if (others != file) return 2;
              return InAChild([&] { return 1 - IsOpen(others); }) == 0 ? 0 : 1;
            }),
            0);
  SystemDisk().Close(file);
}

}  // namespace
}  // namespace tiercel
