// Tests of all that calls a module, with one that needs no GPU
// (cuda_module_for_tests.cc).

#include "kernels/device/cuda/cuda_module.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/device/copies.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/cuda/cuda_module_for_tests.h"
#include "kernels/device/cuda/dynamic_library.h"
#include "kernels/device/cuda/gpu_memory.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

CudaForTest& Find() {
  absl::StatusOr<DynamicLibrary> module =
      DynamicLibrary::Load("module", "libtiercel-cuda.so");
  CudaForTest* (*state)() = nullptr;
  EXPECT_TRUE(module.ok()) << module.status();
  module->Find("tiercel_cuda_for_test", &state);
  return *state();
}

class CudaModuleTest : public testing::Test {
 protected:
  CudaModuleTest() {
    const int streams = cuda_.streams;
    const int events = cuda_.events;
    EXPECT_EQ(streams, 0);  // each test has destroyed its own
    EXPECT_EQ(events, 0);
    cuda_ = CudaForTest();
  }

  static std::unique_ptr<DeviceQueue> Open(int gpu = 0) {
    absl::StatusOr<std::unique_ptr<DeviceQueue>> queue = OpenGpu(gpu);
    EXPECT_TRUE(queue.ok()) << queue.status();
    return *std::move(queue);
  }

  CudaForTest& cuda_ = Find();
};

TEST_F(CudaModuleTest, IsOpenedOnceAndHasThisBuildsKernels) {
  const absl::StatusOr<const CudaModule*>& own = OwnCudaModule();
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(&own, &OwnCudaModule());
  const uint32_t from[] = {3, 4};
  uint32_t to[] = {0, 0};
  EXPECT_EQ(CopyWordsCuda(nullptr, from, 2, InPlace(to)), 0);
  EXPECT_EQ(to[1], 4u);
  EXPECT_EQ(cuda_.launches, 1);
}

TEST_F(CudaModuleTest, ThatIsMissingIsNoDevice) {
  const absl::Status status = OpenCudaModule("libtiercel-none.so").status();
  EXPECT_EQ(CodeOf(status), "no_device");
  EXPECT_THAT(std::string(status.message()),
              StartsWith("device cuda: the CUDA module: libtiercel-none.so: "
                         "cannot open shared object file"));
}

TEST_F(CudaModuleTest, OfAnotherBuildIsNoDevice) {
  const absl::Status status =
      OpenCudaModule(TIERCEL_MODULE_OF_ANOTHER_BUILD).status();
  EXPECT_EQ(CodeOf(status), "no_device");
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("is of another build, need the one of this program"));
}

TEST_F(CudaModuleTest, ALibraryThatIsNoModuleIsNoDevice) {
  const absl::Status status = OpenCudaModule("libc.so.6").status();
  EXPECT_EQ(CodeOf(status), "no_device");
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("libc.so.6 has no tiercel_cuda_module"));
}

TEST_F(CudaModuleTest, OpensAGpuAndDestroysAllOfIt) {
  {
    const std::unique_ptr<DeviceQueue> queue = Open(1);
    EXPECT_EQ(cuda_.launches, 1);  // the kernel that does nothing
    EXPECT_EQ(cuda_.gpu, 1);
    EXPECT_EQ(cuda_.streams, 1);
    EXPECT_GT(cuda_.events, 0);
    EXPECT_EQ(queue->PciBus(), "0000:01:00.0");
    EXPECT_EQ(queue->FreeBytes(), int64_t{1} << 30);
  }
  EXPECT_EQ(cuda_.streams, 0);
  EXPECT_EQ(cuda_.events, 0);
  EXPECT_EQ(cuda_.waits_for_stream, 1);
}

TEST_F(CudaModuleTest, FindsTheFactsOfAGpu) {
  EXPECT_EQ(CountGpus(), 2);
  const absl::StatusOr<GpuFacts> facts = CudaDriver::FindGpu(1);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->runtime, 13000);
  EXPECT_EQ(facts->capability, 89);
  EXPECT_EQ(CodeOf(OpenGpu(2).status()), "no_device");
  cuda_.capability = 70;
  EXPECT_THAT(std::string(OpenGpu().status().message()),
              HasSubstr("compute capability 7.0, need 7.5"));
  cuda_.driver = 0;
  EXPECT_EQ(CountGpus(), 0);
  EXPECT_THAT(std::string(OpenGpu().status().message()),
              HasSubstr("no NVIDIA driver"));
}

TEST_F(CudaModuleTest, WithoutAKernelAnOpNamesTheError) {
  const std::unique_ptr<DeviceQueue> queue = Open();
  const absl::Status status = queue->CopyColumns({});
  EXPECT_EQ(status.message(), "Gather: CUDA error 98, an error of a test");
}

TEST_F(CudaModuleTest, AwaitsAMarkByItsEvent) {
  const std::unique_ptr<DeviceQueue> queue = Open();
  EXPECT_TRUE(queue->Await(0).ok());
  EXPECT_EQ(cuda_.waits_for_event, 0);
  const uint64_t first = queue->Mark();
  const uint64_t second = queue->Mark();
  EXPECT_NE(first, second);
  EXPECT_TRUE(queue->Await(first).ok());
  EXPECT_EQ(cuda_.waits_for_event, 1);
  EXPECT_EQ(cuda_.waits_for_stream, 0);
  EXPECT_EQ(cuda_.records, 2);
}

TEST_F(CudaModuleTest, AwaitsAllWorkIfAMarkWasRefused) {
  const std::unique_ptr<DeviceQueue> queue = Open();
  cuda_.record = kCudaInvalidValue;
  const uint64_t mark = queue->Mark();
  EXPECT_EQ(cuda_.cleared, 2);  // once for the facts
  cuda_.record = 0;
  EXPECT_TRUE(queue->Await(mark).ok());
  EXPECT_EQ(cuda_.waits_for_event, 0);
  EXPECT_EQ(cuda_.waits_for_stream, 1);
}

TEST_F(CudaModuleTest, AQueueWithWorkIsInOrder) {
  const std::unique_ptr<DeviceQueue> queue = Open();
  const int cleared = cuda_.cleared;
  cuda_.query = kCudaNotReady;
  EXPECT_TRUE(queue->Check().ok());
  EXPECT_EQ(cuda_.cleared, cleared + 1);
  cuda_.query = kCudaLaunchFailure;
  EXPECT_EQ(CodeOf(queue->Check()), "device_lost");
}

TEST_F(CudaModuleTest, AsksTwiceForMemory) {
  const std::unique_ptr<DeviceQueue> queue = Open();
  DeviceMemory& memory = queue->memory();
  const int64_t before = memory.used();
  cuda_.allocate_once = kCudaOutOfMemory;
  const absl::StatusOr<DevicePtr<std::byte>> taken =
      memory.Allocate(3 << 20, "a test");
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(memory.used() - before, 4 << 20);  // whole blocks
  memory.Free(*taken, 3 << 20);
  EXPECT_EQ(memory.used(), before);

  cuda_.allocate = kCudaOutOfMemory;
  const absl::Status status = memory.Allocate(1 << 20, "a test").status();
  EXPECT_EQ(CodeOf(status), "out_of_memory");
  EXPECT_EQ(status.message(),
            "a test: need 1048576 bytes, the GPU has 1073741824 free");
}

TEST_F(CudaModuleTest, CopiesAndFillsItsMemory) {
  const std::unique_ptr<DeviceQueue> queue = Open();
  DeviceMemory& memory = queue->memory();
  absl::StatusOr<DeviceArray<int>> array =
      DeviceArray<int>::Create(memory, 4, "a test");
  ASSERT_TRUE(array.ok()) << array.status();
  const std::vector<int> from = {1, 2, 3, 4};
  std::vector<int> to(4);
  ASSERT_TRUE(queue->Copy(array->data(), from.data(), 16).ok());
  ASSERT_TRUE(queue->Zero(array->data() + 1, 4).ok());
  ASSERT_TRUE(queue->Copy(to.data(), array->data(), 16).ok());
  EXPECT_THAT(to, testing::ElementsAre(1, 0, 3, 4));
}

TEST_F(CudaModuleTest, KernelsSeePinnedMemoryAtTheHostsAddressOrNotAtAll) {
  const std::unique_ptr<DeviceQueue> queue = Open();
  std::byte host[8] = {};
  EXPECT_TRUE(queue->Pin(host, sizeof(host)).ok());
  EXPECT_TRUE(queue->KernelsSee(host));
  cuda_.pins_elsewhere = true;
  EXPECT_FALSE(queue->KernelsSee(host));
  cuda_.pin = kCudaInvalidValue;
  EXPECT_EQ(CodeOf(queue->Pin(host, sizeof(host))), "device_failed");
}

}  // namespace
}  // namespace tiercel
