#include "apps/terminal/typed_lines.h"

#include <unistd.h>

#include <csignal>
#include <optional>
#include <string>
#include <thread>

#include "apps/cli/error.h"
#include "gtest/gtest.h"

namespace tiercel::cli {
namespace {

// While one lives, stdin holds `bytes` and then ends.
class Stdin {
 public:
  explicit Stdin(const std::string& bytes) : before_(dup(STDIN_FILENO)) {
    signal(SIGPIPE, SIG_IGN);
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    writer_ = std::thread([bytes, end = ends[1]] {
      for (size_t at = 0; at < bytes.size();) {
        const ssize_t put = write(end, bytes.data() + at, bytes.size() - at);
        if (put <= 0) break;
        at += static_cast<size_t>(put);
      }
      close(end);
    });
  }
  ~Stdin() {
    dup2(before_, STDIN_FILENO);  // a writer that still waits ends
    close(before_);
    writer_.join();
  }
  Stdin(const Stdin&) = delete;
  Stdin& operator=(const Stdin&) = delete;

 private:
  const int before_;
  std::thread writer_;
};

std::string Next(TypedLines& lines) {
  const absl::StatusOr<std::optional<std::string>> line = lines.Read();
  if (!line.ok()) return CodeOf(line.status());
  return line->has_value() ? **line : "(end)";
}

TEST(TypedLinesTest, EachLineWithoutBlanks) {
  const Stdin typed("one\n\n \t two \r\nthree");
  TypedLines lines;
  for (const char* line : {"one", "", "two", "three", "(end)", "(end)"}) {
    EXPECT_EQ(Next(lines), line);
  }
}

TEST(TypedLinesTest, OfALongLineNothingIsTakenForTheNext) {
  const std::string longest(TypedLines::kMostBytes, 'x');
  const Stdin typed(longest + "\n" + longest + "yz" + longest + "\nnext\n" +
                    longest + longest);
  TypedLines lines;
  EXPECT_EQ(Next(lines), longest);
  EXPECT_EQ(Next(lines), "input_too_large");
  EXPECT_EQ(Next(lines), "next");
  EXPECT_EQ(Next(lines), "input_too_large");
  EXPECT_EQ(Next(lines), "(end)");
}

TEST(TypedLinesTest, BlanksAreNothing) {
  {
    const Stdin typed(" \n\t\n" + std::string(9000, ' '));
    TypedLines lines;
    EXPECT_FALSE(*lines.AnyLeft());
    EXPECT_EQ(Next(lines), "(end)");
  }
  const Stdin typed(std::string(9000, '\n') + "who?\nwhy?\n");
  TypedLines lines;
  EXPECT_TRUE(*lines.AnyLeft());
  std::string line;
  while (line.empty()) line = Next(lines);
  EXPECT_EQ(line, "who?");
  EXPECT_TRUE(*lines.AnyLeft());
  EXPECT_EQ(Next(lines), "why?");
  EXPECT_FALSE(*lines.AnyLeft());
}

}  // namespace
}  // namespace tiercel::cli
