#include "lib/status/error.h"

#include "gtest/gtest.h"

namespace tiercel {
namespace {

TEST(ErrorTest, CarriesClassCodeAndMessage) {
  const struct {
    absl::Status status;
    ErrorClass error_class;
  } cases[] = {
      {UsageError("a_code", "a message"), ErrorClass::kUsage},
      {InputError("a_code", "a message"), ErrorClass::kInput},
      {MemoryError("a_code", "a message"), ErrorClass::kMemory},
      {DeviceError("a_code", "a message"), ErrorClass::kDevice},
      {IoError("a_code", "a message"), ErrorClass::kIo},
      {InternalError("a_code", "a message"), ErrorClass::kFailed},
  };
  for (const auto& c : cases) {
    EXPECT_FALSE(c.status.ok());
    EXPECT_EQ(ClassOf(c.status), c.error_class);
    EXPECT_EQ(CodeOf(c.status), "a_code");
    EXPECT_EQ(c.status.message(), "a message");
  }
}

TEST(ErrorTest, CancelledHasItsOwnClassAndCode) {
  EXPECT_EQ(ClassOf(CancelledError()), ErrorClass::kCancelled);
  EXPECT_EQ(CodeOf(CancelledError()), "cancelled");
}

TEST(ErrorTest, OkIsOk) {
  EXPECT_EQ(ClassOf(absl::OkStatus()), ErrorClass::kOk);
}

TEST(ErrorTest, AnnotateKeepsClassAndCode) {
  const absl::Status status =
      Annotate(InputError("not_gguf", "got 4 bytes"), "model.gguf");
  EXPECT_EQ(status.message(), "model.gguf: got 4 bytes");
  EXPECT_EQ(ClassOf(status), ErrorClass::kInput);
  EXPECT_EQ(CodeOf(status), "not_gguf");
  EXPECT_TRUE(Annotate(absl::OkStatus(), "model.gguf").ok());
}

// A status of another library has a class and a code too.
TEST(ErrorTest, ForeignStatusIsInternal) {
  const absl::Status foreign = absl::NotFoundError("elsewhere");
  EXPECT_EQ(ClassOf(foreign), ErrorClass::kFailed);
  EXPECT_EQ(CodeOf(foreign), "internal");
  EXPECT_EQ(CodeOf(Annotate(foreign, "here")), "internal");
}

}  // namespace
}  // namespace tiercel
