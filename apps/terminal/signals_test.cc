#include "apps/terminal/signals.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "gtest/gtest.h"

namespace tiercel::cli {
namespace {

// Runs `body` in a child, whose signals and streams are its own. Returns what
// `body` does.
template <typename Body>
int InAChild(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// A handler may not change what the code that it interrupts reads in errno.
TEST(SignalsTest, WakingKeepsErrno) {
  EXPECT_EQ(InAChild([] {
              InstallSignalHandlers(/*json=*/false);
              for (int i = 0; i < 70'000; ++i) {  // until the pipe is full
                errno = ENOTTY;
                WakeReader();
                if (errno != ENOTTY) return 1;
              }
              return 0;
            }),
            0);
}

TEST(SignalsTest, ChildrenHaveAStatusEvenIfTheParentIgnoresThem) {
  EXPECT_EQ(InAChild([] {
              signal(SIGCHLD, SIG_IGN);
              InstallSignalHandlers(/*json=*/false);
              return InAChild([] { return 7; });
            }),
            7);
}

// A file that is opened later gets no number of a standard stream.
TEST(SignalsTest, StandardStreamsThatAreClosedAreHeld) {
  EXPECT_EQ(InAChild([] {
              for (int fd = 0; fd <= 2; ++fd) close(fd);
              HoldStandardStreams();
              for (int fd = 0; fd <= 2; ++fd) {
                const int mode = fcntl(fd, F_GETFL) & O_ACCMODE;
                if (mode != (fd == 0 ? O_WRONLY : O_RDONLY)) return 1;
              }
              return open("/dev/null", O_RDONLY) > 2 ? 0 : 2;
            }),
            0);
}

}  // namespace
}  // namespace tiercel::cli
