#include "kernels/device/stream.h"

#include <stdlib.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/system/resource_limits.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

TEST(StreamTest, IsWhatWasAskedFor) {
  for (DeviceKind device : {DeviceKind::kCpu, DeviceKind::kRef}) {
    for (int threads : {1, 2, 3}) {
      const std::unique_ptr<Stream> stream = MakeStream(device, threads);
      EXPECT_EQ(stream->device(), device);
      EXPECT_EQ(stream->pool().num_threads(), threads);
    }
  }
}

TEST(StreamTest, ZeroThreadsMeansAllAllowed) {
  EXPECT_EQ(MakeStream(DeviceKind::kCpu, 0)->pool().num_threads(),
            AllowedCpus());
}

TEST(StreamTest, TakesTheIsaOfTheEnvironment) {
  for (Isa isa : SupportedIsas()) {
    EXPECT_EQ(MakeStream(DeviceKind::kCpu, 1, isa)->isa(), isa);
  }
}

TEST(StreamTest, RefusesAnUnknownIsa) {
  setenv("TIERCEL_ISA", "avx9", /*overwrite=*/1);
  const absl::StatusOr<std::unique_ptr<Stream>> stream = Stream::Create({});
  unsetenv("TIERCEL_ISA");
  ASSERT_FALSE(stream.ok());
  EXPECT_EQ(CodeOf(stream.status()), "invalid_environment");
  EXPECT_EQ(ClassOf(stream.status()), ErrorClass::kUsage);
}

class StreamMemoryTest : public BackendTest {};
INSTANTIATE_TEST_SUITE_P(Backends, StreamMemoryTest,
                         testing::ValuesIn(Backends()), NameOfBackend);

TEST_P(StreamMemoryTest, ScratchIsAlignedAndGrows) {
  const std::unique_ptr<Stream> stream = NewStream();
  for (size_t bytes : {1u, 63u, 64u, 65u, 100000u, 100u, 1000000u}) {
    const absl::StatusOr<DevicePtr<std::byte>> scratch = stream->Scratch(bytes);
    ASSERT_TRUE(scratch.ok()) << scratch.status();
    EXPECT_TRUE(scratch->IsAligned(64));
    const std::vector<uint8_t> written(bytes, 7);
    ASSERT_TRUE(stream->Copy(*scratch, written.data(), bytes).ok());
    std::vector<uint8_t> read(bytes, 0);
    ASSERT_TRUE(stream->Copy(read.data(), *scratch, bytes).ok());
    ASSERT_TRUE(stream->Synchronize().ok());
    EXPECT_EQ(read, written);
  }
}

TEST_P(StreamMemoryTest, CopiesNothingFromNowhere) {
  const DevicePtr<void> none;
  EXPECT_TRUE(NewStream()->Copy(none, nullptr, 0).ok());
  EXPECT_TRUE(NewStream()->Copy(nullptr, none, 0).ok());
  EXPECT_TRUE(NewStream()->Copy(none, none, 0).ok());
}

TEST_P(StreamMemoryTest, ScratchThatDoesNotFitIsAnErrorAndNotTheEnd) {
  const std::unique_ptr<Stream> stream = NewStream();
  const absl::StatusOr<DevicePtr<std::byte>> huge =
      stream->Scratch(size_t{1} << 60);
  ASSERT_FALSE(huge.ok());
  EXPECT_EQ(CodeOf(huge.status()), "out_of_memory");
  EXPECT_EQ(ClassOf(huge.status()), ErrorClass::kMemory);
  // Later calls do not return this error.
  EXPECT_TRUE(stream->Synchronize().ok());
  EXPECT_TRUE(stream->Scratch(100).ok());
}

}  // namespace
}  // namespace tiercel
