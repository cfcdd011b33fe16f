#include "apps/terminal/screen.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "apps/terminal/output.h"
#include "apps/terminal/progress.h"
#include "gtest/gtest.h"

namespace tiercel::cli {
namespace {

constexpr char kErase[] = "\r\x1b[K";

// Returns the bytes that `write` brings to a terminal of `columns` columns,
// which is stdout and stderr of a process of its own.
std::string ShownOn(int columns, const std::function<void()>& write,
                    const char* term = "xterm") {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  EXPECT_EQ(grantpt(terminal), 0);
  EXPECT_EQ(unlockpt(terminal), 0);
  const int inner = open(ptsname(terminal), O_RDWR | O_NOCTTY);
  winsize size = {};
  size.ws_col = static_cast<unsigned short>(columns);
  EXPECT_EQ(ioctl(inner, TIOCSWINSZ, &size), 0);
  const pid_t child = fork();
  if (child == 0) {
    setenv("TERM", term, 1);
    unsetenv("COLUMNS");
    dup2(inner, STDOUT_FILENO);
    dup2(inner, STDERR_FILENO);
    write();
    _exit(0);
  }
  close(inner);
  std::string shown;
  char bytes[4096];
  for (ssize_t got; (got = read(terminal, bytes, sizeof(bytes))) > 0;) {
    shown.append(bytes, static_cast<size_t>(got));
  }
  close(terminal);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return shown;
}

TEST(ScreenTest, TextStandsAboveTheStatusLine) {
  const std::string bar = std::string(kErase) + "bar";
  EXPECT_EQ(ShownOn(80,
                    [] {
                      ShowStatus("bar");
                      WriteNote("a note\n");
                      WriteOut("text\n").IgnoreError();
                      ShowStatus("");
                      WriteNote("the end\n");
                    }),
            bar + kErase + "a note\r\n" + bar + kErase + "text\r\n" + bar +
                kErase + "the end\r\n");
}

TEST(ScreenTest, NotesAndTablesBreakBetweenWords) {
  const std::string row = "  context   8,192 tokens, of a model\n";
  const std::string shown = "  context   8,192\r\ntokens, of a model\r\n";
  EXPECT_EQ(ShownOn(20, [&] { WriteNote(row); }), shown);
  EXPECT_EQ(ShownOn(20, [&] { WriteProse(row).IgnoreError(); }), shown);
}

TEST(ScreenTest, NoStatusLineInTheMiddleOfALine) {
  EXPECT_EQ(ShownOn(80,
                    [] {
                      WriteOut("half a ").IgnoreError();
                      ShowStatus("bar");
                      WriteOut("line\n").IgnoreError();
                    }),
            std::string("half a line\r\n") + kErase + "bar");
}

TEST(ScreenTest, AStatusLineIsOneAndSafe) {
  EXPECT_EQ(ShownOn(80, [] { ShowStatus("a\nb\x1b[2J\tc"); }),
            std::string(kErase) + "a b?[2J c");
  EXPECT_EQ(ShownOn(
                80, [] { ShowStatus("bar"); }, "dumb"),
            "");
}

TEST(ScreenTest, ProgressIsTakenAway) {
  EXPECT_EQ(ShownOn(20,
                    [] {
                      Progress progress(/*wanted=*/true, "reading", "tokens",
                                        "tok/s");
                      progress.Show(1, 2);
                    }),
            std::string(kErase) + "reading 1 / 2 token" + kErase);
}

TEST(ScreenTest, ProseBreaksBetweenWords) {
  const auto write = [] {
    ProseWriter prose;
    for (const char* piece : {"the fal", "con saw", " the\x1b sea"}) {
      prose.Write(piece).IgnoreError();
    }
    prose.Finish().IgnoreError();
  };
  EXPECT_EQ(ShownOn(11, write), "the falcon\r\nsaw the?\r\nsea");
  EXPECT_EQ(ShownOn(0, write), "the falcon saw the? sea");
  // COLUMNS takes precedence over the terminal, if it is a width.
  for (const char* columns : {"11", "0", "-11", "wide", ""}) {
    EXPECT_EQ(ShownOn(80,
                      [&] {
                        setenv("COLUMNS", columns, 1);
                        write();
                      }),
              std::string(columns) == "11" ? "the falcon\r\nsaw the?\r\nsea"
                                           : "the falcon saw the? sea");
  }
}

}  // namespace
}  // namespace tiercel::cli
