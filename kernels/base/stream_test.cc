#include "kernels/base/stream.h"

#include <stdlib.h>

#include <cstring>
#include <string>

#include "gtest/gtest.h"
#include "kernels/base/error.h"
#include "kernels/base/testing.h"

namespace tiercel {
namespace {

TEST(StreamTest, IsWhatWasAskedFor) {
  for (Device device : {Device::kCpu, Device::kRef}) {
    for (int threads : {1, 2, 3}) {
      const std::unique_ptr<Stream> stream = MakeStream(device, threads);
      EXPECT_EQ(stream->device(), device);
      EXPECT_EQ(stream->pool().num_threads(), threads);
    }
  }
}

TEST(StreamTest, ZeroThreadsMeansAllAllowed) {
  EXPECT_EQ(MakeStream(Device::kCpu, 0)->pool().num_threads(), AllowedCpus());
}

TEST(StreamTest, TakesTheLevelOfTheEnvironment) {
  for (Isa isa : SupportedIsas()) {
    EXPECT_EQ(MakeStream(Device::kCpu, 1, isa)->isa(), isa);
  }
}

TEST(StreamTest, RefusesAnUnknownLevel) {
  setenv("TIERCEL_ISA", "avx9", /*overwrite=*/1);
  const absl::StatusOr<std::unique_ptr<Stream>> stream = Stream::Create({});
  unsetenv("TIERCEL_ISA");
  ASSERT_FALSE(stream.ok());
  EXPECT_EQ(CodeOf(stream.status()), "invalid_environment");
  EXPECT_EQ(ClassOf(stream.status()), ErrorClass::kUsage);
}

TEST(StreamTest, ScratchIsAlignedAndGrows) {
  const std::unique_ptr<Stream> stream = MakeStream(Device::kCpu);
  for (size_t bytes : {1u, 63u, 64u, 65u, 100000u, 100u, 1000000u}) {
    const absl::StatusOr<std::byte*> scratch = stream->Scratch(bytes);
    ASSERT_TRUE(scratch.ok()) << scratch.status();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(*scratch) % 64, 0u);
    std::memset(*scratch, 1, bytes);
  }
}

TEST(StreamTest, ScratchThatDoesNotFitIsAnErrorAndNotTheEnd) {
  const std::unique_ptr<Stream> stream = MakeStream(Device::kCpu);
  const absl::StatusOr<std::byte*> huge = stream->Scratch(size_t{1} << 60);
  ASSERT_FALSE(huge.ok());
  EXPECT_EQ(CodeOf(huge.status()), "out_of_memory");
  EXPECT_EQ(ClassOf(huge.status()), ErrorClass::kMemory);
  EXPECT_TRUE(stream->Scratch(100).ok());
}

}  // namespace
}  // namespace tiercel
