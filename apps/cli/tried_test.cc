#include "apps/cli/tried.h"

#include <new>
#include <stdexcept>
#include <string>

#include "apps/cli/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "include/tiercel.hpp"

namespace tiercel::cli {
namespace {

// "EXIT CODE: MESSAGE" of what a call throws.
template <typename Thrown>
std::string ErrorOf(Thrown thrown) {
  const absl::Status status = Tried([&] { throw thrown; });
  return std::to_string(static_cast<int>(ExitOf(status))) + " " +
         CodeOf(status) + ": " + std::string(status.message());
}

TEST(TriedTest, ReturnsWhatTheCallReturns) {
  const absl::StatusOr<std::string> text =
      Tried([] { return std::string("a"); });
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, "a");
  EXPECT_TRUE(Tried([] {}).ok());
  EXPECT_TRUE(StatusOf(nullptr).ok());
  EXPECT_EQ(Tried([]() -> int { throw tiercel::Error(TIERCEL_IO, "a", "b"); })
                .status()
                .message(),
            "b");
}

TEST(TriedTest, ErrorsKeepTheirCodeAndMessage) {
  const std::pair<tiercel_status, const char*> exits[] = {
      {TIERCEL_FAILED, "1"},        {TIERCEL_USAGE, "2"},
      {TIERCEL_INVALID_INPUT, "3"}, {TIERCEL_OUT_OF_MEMORY, "4"},
      {TIERCEL_NO_DEVICE, "5"},     {TIERCEL_IO, "6"}};
  for (const auto& [status, exit] : exits) {
    EXPECT_EQ(ErrorOf(tiercel::Error(status, "the_code", "what: got, need")),
              std::string(exit) + " the_code: what: got, need");
  }
  EXPECT_EQ(ErrorOf(tiercel::Error(TIERCEL_USAGE, "view_too_large", "a")),
            "4 view_too_large: a");
  EXPECT_EQ(ErrorOf(tiercel::Error(TIERCEL_CANCELLED, "cancelled", "a")),
            "1 interrupted: interrupted");
  EXPECT_EQ(ErrorOf(std::bad_alloc()), "4 out_of_memory: out of memory");
  EXPECT_EQ(ErrorOf(std::runtime_error("a")), "1 internal: a");
}

TEST(TriedTest, ACallbacksErrorStaysAsItIs) {
  EXPECT_EQ(ErrorOf(Stopped(Error(Exit::kIo, "io_error", "a"))),
            "6 io_error: a");
  EXPECT_TRUE(IsReaderGone(Tried([] { throw Stopped(ReaderGone()); })));
}

}  // namespace
}  // namespace tiercel::cli
