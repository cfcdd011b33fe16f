#include "apps/cli/error.h"

#include <cerrno>

#include "gtest/gtest.h"

namespace tiercel::cli {
namespace {

TEST(ErrorTest, CarriesExitCodeAndMessage) {
  for (Exit exit : {Exit::kFailed, Exit::kUsage, Exit::kInput, Exit::kMemory,
                    Exit::kDevice, Exit::kIo}) {
    const absl::Status status = Error(exit, "some_code", "what happened");
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(ExitOf(status), exit);
    EXPECT_EQ(CodeOf(status), "some_code");
    EXPECT_EQ(status.message(), "what happened");
  }
}

TEST(ErrorTest, ExitCodesAreTheContract) {
  EXPECT_EQ(static_cast<int>(Exit::kOk), 0);
  EXPECT_EQ(static_cast<int>(Exit::kFailed), 1);
  EXPECT_EQ(static_cast<int>(Exit::kUsage), 2);
  EXPECT_EQ(static_cast<int>(Exit::kInput), 3);
  EXPECT_EQ(static_cast<int>(Exit::kMemory), 4);
  EXPECT_EQ(static_cast<int>(Exit::kDevice), 5);
  EXPECT_EQ(static_cast<int>(Exit::kIo), 6);
}

TEST(ErrorTest, OkIsZero) { EXPECT_EQ(ExitOf(absl::OkStatus()), Exit::kOk); }

TEST(ErrorTest, ForeignStatusIsInternal) {
  const absl::Status status = absl::UnknownError("from elsewhere");
  EXPECT_EQ(ExitOf(status), Exit::kFailed);
  EXPECT_EQ(CodeOf(status), "internal");
}

TEST(ErrorTest, SystemErrorSaysTheReason) {
  errno = ENOSPC;
  const absl::Status status = SystemError("writing 'x'");
  EXPECT_EQ(ExitOf(status), Exit::kIo);
  EXPECT_EQ(CodeOf(status), "io_error");
  EXPECT_EQ(status.message(), "writing 'x': No space left on device");
}

TEST(ErrorTest, AReaderThatWentAwayIsNoFailure) {
  EXPECT_TRUE(IsReaderGone(ReaderGone()));
  EXPECT_EQ(ExitOf(ReaderGone()), Exit::kOk);
  EXPECT_FALSE(IsReaderGone(Error(Exit::kIo, "io_error", "")));
}

TEST(ErrorTest, InterruptedIsItself) {
  EXPECT_TRUE(IsInterrupted(Interrupted()));
  EXPECT_EQ(CodeOf(Interrupted()), "interrupted");
  EXPECT_FALSE(IsInterrupted(Error(Exit::kFailed, "internal", "")));
}

}  // namespace
}  // namespace tiercel::cli
