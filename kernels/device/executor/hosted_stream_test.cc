#include "kernels/device/executor/hosted_stream.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/device_lang.h"
#include "kernels/device/sim/sim_memory.h"
#include "kernels/system/signals_for_test.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

// A kernel whose one thread calls `body`.
template <typename Function>
struct Call {
  static constexpr int kMaxThreads = 1;
  struct Shared {};
  const Function* body;
  void operator()(const Thread&, Shared&) const { (*body)(); }
};

class HostedStreamTest : public testing::Test {
 protected:
  void SetUp() override {
    array_ = *DeviceArray<float>::Create(stream_->memory(), 33, "test");
  }
  float Read(int64_t i) {
    float x = 0;
    EXPECT_TRUE(stream_->Copy(&x, array_.data() + i, sizeof(x)).ok());
    EXPECT_TRUE(stream_->Synchronize().ok());
    return x;
  }
  absl::Status Write(int64_t i, float x) {
    EXPECT_TRUE(stream_->Copy(array_.data() + i, &x, sizeof(x)).ok());
    return stream_->Synchronize();
  }

  const std::unique_ptr<Stream> stream_ = MakeHostedStream(Order::kAscending);
  DeviceArray<float> array_;
};

TEST_F(HostedStreamTest, ArraysStartAsNanAndEndWhereTheyEnd) {
  EXPECT_TRUE(std::isnan(Read(32)));
  EXPECT_TRUE(Write(32, 1).ok());
  EXPECT_EQ(Read(32), 1);
  EXPECT_EQ(Write(33, 1).message(), "byte 132 of an array of 132 was written");
}

TEST_F(HostedStreamTest, IsCounted) {
  const int64_t before = stream_->memory().used();
  array_ = {};
  EXPECT_EQ(stream_->memory().used(), before - 192);
  EXPECT_TRUE(stream_->Synchronize().ok());
}

TEST_F(HostedStreamTest, KernelsFaultBehindAnArrayAndSoDoesTheHostInIt) {
  volatile float* const x = HostAddress(array_.data());
  const auto body = [x] { x[48] = x[47]; };
  EXPECT_EQ(Launch(stream_->queue().handle(), {}, Call<decltype(body)>{&body}),
            0);
  EXPECT_EQ(stream_->Synchronize().message(),
            "device cuda: CUDA error 719, block 0, thread 0: touched an "
            "address where nothing is; this process can no longer use the GPU");
  EXPECT_DEATH(x[0] = 1, "");
}

// Work is done as late as CUDA may, with the bytes that the source had when the
// copy was queued.
TEST_F(HostedStreamTest, NothingIsDoneBeforeSomebodyWaits) {
  float sent = 3;
  float got = 5;
  int calls = 0;
  const auto body = [&calls] { ++calls; };
  EXPECT_TRUE(stream_->Copy(array_.data(), &sent, sizeof(sent)).ok());
  sent = 4;
  EXPECT_EQ(Launch(stream_->queue().handle(), {.blocks = 2},
                   Call<decltype(body)>{&body}),
            0);
  EXPECT_TRUE(stream_->Copy(&got, array_.data(), sizeof(got)).ok());
  EXPECT_EQ(calls, 0);
  EXPECT_TRUE(std::isnan(got));
  EXPECT_TRUE(stream_->Synchronize().ok());
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(got, 3);
}

TEST_F(HostedStreamTest, FreeingWaits) {
  int calls = 0;
  const auto body = [&calls] { ++calls; };
  EXPECT_EQ(Launch(stream_->queue().handle(), {}, Call<decltype(body)>{&body}),
            0);
  array_ = {};
  EXPECT_EQ(calls, 1);
}

// Another thread waits for a part of the queued work.
TEST_F(HostedStreamTest, AMarkIsWhatWasQueuedBefore) {
  DeviceQueue& cuda = stream_->queue();
  EXPECT_TRUE(cuda.Await(cuda.Mark()).ok());
  int calls = 0;
  const auto body = [&calls] { ++calls; };
  const auto launch = [&] {
    EXPECT_EQ(Launch(cuda.handle(), {}, Call<decltype(body)>{&body}), 0);
  };
  launch();
  launch();
  const uint64_t mark = cuda.Mark();
  launch();
  std::thread([&] { EXPECT_TRUE(cuda.Await(mark).ok()); }).join();
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(cuda.Await(mark).ok());
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(stream_->Synchronize().ok());
  EXPECT_EQ(calls, 3);
}

// Pinned memory is read when the copy is done, with the bytes it has then.
TEST_F(HostedStreamTest, PinnedMemoryIsTheDevicesToRead) {
  DeviceQueue& cuda = stream_->queue();
  std::vector<std::byte> memory(sizeof(float));
  auto* const sent = reinterpret_cast<float*>(memory.data());
  *sent = 3;
  ASSERT_TRUE(cuda.Pin(memory.data(), memory.size()).ok());
  EXPECT_TRUE(cuda.Copy(array_.data(), sent, sizeof(float)).ok());
  *sent = 4;
  EXPECT_EQ(Read(0), 4);
  EXPECT_TRUE(cuda.Copy(sent, array_.data() + 1, sizeof(float)).ok());
  EXPECT_EQ(*sent, 4);  // it has not arrived
  EXPECT_TRUE(stream_->Synchronize().ok());
  EXPECT_TRUE(std::isnan(*sent));
  EXPECT_EQ(SimPinnedBytes(), 4);
  EXPECT_FALSE(cuda.Pin(memory.data() + 3, 10).ok());
  EXPECT_FALSE(cuda.Pin(memory.data() - 3, 4).ok());
  cuda.Unpin(memory.data());
  EXPECT_EQ(SimPinnedBytes(), 0);
}

// Sends more lists than the ring holds, each with different values. A wait that
// is refused once harms no list.
TEST_F(HostedStreamTest, ListsThatWaitAreNotWrittenOver) {
  constexpr size_t kList = 16 << 10;  // floats, a quarter of a half
  constexpr size_t kLists = 24;
  for (const bool refused : {false, true}) {
    auto all = *DeviceArray<float>::Create(
        stream_->memory(), static_cast<int64_t>(kList * kLists), "lists");
    bool refuses = refused;
    SimFaults faults([&](std::string_view call) {
      return call == "wait" && std::exchange(refuses, false) ? kCudaInvalidValue
                                                             : kCudaSuccess;
    });
    std::vector<float> list(kList);
    int failed = 0;
    for (size_t i = 0; i < kLists; ++i) {
      std::fill(list.begin(), list.end(), static_cast<float>(i));
      const DevicePtr<float> to = all.data() + static_cast<int64_t>(i * kList);
      const size_t bytes = kList * sizeof(float);
      if (stream_->Send(to, list.data(), bytes).ok()) continue;
      ++failed;
      EXPECT_TRUE(stream_->Send(to, list.data(), bytes).ok());
    }
    faults.End();
    EXPECT_EQ(failed, refused ? 1 : 0);
    std::vector<float> arrived;
    ASSERT_TRUE(ReadBack(*stream_, all, &arrived).ok());
    for (size_t i = 0; i < arrived.size(); ++i) {
      ASSERT_EQ(arrived[i], static_cast<float>(i / kList)) << i;
    }
  }
}

// If kernels cannot read the host's memory at its address, the ring is not
// used, and lists are sent by copies.
TEST_F(HostedStreamTest, ListsGoByCopiesWhereKernelsSeeNoPinnedMemory) {
  std::map<std::string, int> calls;
  const SimFaults faults([&](std::string_view call) {
    ++calls[std::string(call)];
    return call == "see" ? kCudaInvalidValue : kCudaSuccess;
  });
  const float sent[] = {3, 4};
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(stream_->Send(array_.data(), sent, sizeof(sent)).ok());
  }
  EXPECT_EQ(calls,
            (std::map<std::string, int>{{"pin", 1}, {"see", 1}, {"copy", 2}}));
  EXPECT_EQ(SimPinnedBytes(), 0);
  EXPECT_EQ(Read(1), 4);
}

// ---- Faults ----

// A launch that is refused at once causes no error at a wait, and does not lose
// the device.
TEST_F(HostedStreamTest, ALaunchThatNoGpuTakesIsRefusedAtOnce) {
  const auto body = [] {};
  EXPECT_EQ(Launch(stream_->queue().handle(), {.threads = 2},
                   Call<decltype(body)>{&body}),
            kCudaInvalidConfiguration);
  EXPECT_EQ(CodeOf(CudaStatus("Op", kCudaInvalidConfiguration)),
            "device_failed");
  EXPECT_TRUE(stream_->Synchronize().ok());
}

TEST_F(HostedStreamTest, EveryCallMayBeRefused) {
  DeviceQueue& cuda = stream_->queue();
  const auto body = [] {};
  const auto status_of = [&](std::string_view call) -> absl::Status {
    if (call == "create") return OpenGpu().status();
    if (call == "allocate") return cuda.memory().Allocate(1, "x").status();
    if (call == "pin") return cuda.Pin(nullptr, 0);
    if (call == "copy") return cuda.Zero(array_.data(), 4);
    if (call == "wait") return cuda.Synchronize();
    if (call == "check") return cuda.Check();
    return CudaStatus("x",
                      Launch(cuda.handle(), {}, Call<decltype(body)>{&body}));
  };
  for (const std::string_view call :
       {"create", "allocate", "pin", "copy", "launch", "wait", "check"}) {
    const SimFaults faults([&](std::string_view asked) {
      return asked == call ? kCudaInvalidValue : kCudaSuccess;
    });
    EXPECT_FALSE(status_of(call).ok()) << call;
  }
  // If the mark is refused, the wait is for all that is queued.
  int calls = 0;
  const auto count = [&calls] { ++calls; };
  const SimFaults faults([](std::string_view asked) {
    return asked == "mark" ? kCudaInvalidValue : kCudaSuccess;
  });
  const uint64_t mark = cuda.Mark();
  EXPECT_EQ(Launch(cuda.handle(), {}, Call<decltype(count)>{&count}), 0);
  EXPECT_TRUE(cuda.Await(mark).ok());
  EXPECT_EQ(calls, 1);
}

// Makes every call to the device, one after the other, and returns their
// statuses.
std::vector<absl::Status> EveryCall(Stream& stream, DevicePtr<float> array) {
  DeviceQueue& cuda = stream.queue();
  const auto body = [] {};
  std::byte host[8];
  return {
      cuda.Check(),
      cuda.Copy(array, host, 4),
      cuda.Zero(array, 4),
      CudaStatus("x", Launch(cuda.handle(), {}, Call<decltype(body)>{&body})),
      cuda.Await(cuda.Mark()),
      cuda.Synchronize(),
      cuda.Pin(host, sizeof(host)),
      cuda.memory().Allocate(1, "x").status(),
      cuda.memory().Copy(array, array, 1),
      OpenGpu().status()};
}

// H07: after a kernel's fault every call, on every stream, returns that fault,
// and queued work is not done.
TEST_F(HostedStreamTest, AKernelsFaultLosesTheDevice) {
  const auto other = *OpenGpu();
  int calls = 0;
  const auto count = [&calls] { ++calls; };
  const auto fails = [] { CheckIndex(9, 8); };
  EXPECT_EQ(Launch(other->handle(), {}, Call<decltype(count)>{&count}), 0);
  EXPECT_EQ(
      Launch(stream_->queue().handle(), {}, Call<decltype(fails)>{&fails}), 0);
  EXPECT_TRUE(stream_->queue().Check().ok());  // it has not run yet
  EXPECT_FALSE(stream_->Synchronize().ok());
  EXPECT_FALSE(other->Synchronize().ok());
  EXPECT_EQ(calls, 0);
  for (const absl::Status& status : EveryCall(*stream_, array_.data())) {
    EXPECT_EQ(CodeOf(status), "device_lost") << status;
    EXPECT_THAT(std::string(status.message()),
                testing::HasSubstr("CUDA error 719, block 0, thread 0: element "
                                   "9 of an array of 8;"));
  }
  EXPECT_EQ(SimPinnedBytes(), 0);
  // A new stream finds the device usable, as another process would.
  EXPECT_TRUE(MakeHostedStream(Order::kAscending)->Synchronize().ok());
}

// H08: the driver reports that the device is lost.
TEST_F(HostedStreamTest, ALostDeviceIsLostToAll) {
  for (const int error : {kCudaLaunchTimeout, kCudaEccUncorrectable,
                          kCudaIllegalAddress, kCudaUnknown}) {
    SimFaults faults([error](std::string_view call) {
      return call == "wait" ? error : kCudaSuccess;
    });
    EXPECT_TRUE(stream_->Zero(array_.data(), 4).ok());
    EXPECT_EQ(CodeOf(stream_->Synchronize()), "device_lost");
    for (const absl::Status& status : EveryCall(*stream_, array_.data())) {
      EXPECT_EQ(CodeOf(status), "device_lost") << status;
    }
    faults.End();
    EXPECT_TRUE(stream_->Synchronize().ok());
  }
}

// H04: memory that another process holds for a moment.
TEST_F(HostedStreamTest, MemoryIsAskedForTwice) {
  GpuMemory& memory = SimMemory::Get();
  int left = 1;
  SimFaults faults([&left](std::string_view call) {
    return call == "allocate" && left-- > 0 ? kCudaOutOfMemory : kCudaSuccess;
  });
  const int64_t used = memory.used();
  absl::StatusOr<DevicePtr<std::byte>> data = memory.Allocate(100, "view");
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(memory.used(), used + 128);
  memory.Free(*data, 100);
  left = 2;
  data = memory.Allocate(100, "view");
  EXPECT_EQ(CodeOf(data.status()), "out_of_memory");
  EXPECT_THAT(
      std::string(data.status().message()),
      testing::MatchesRegex("view: need 100 bytes, the GPU has [0-9]+ free"));
  EXPECT_EQ(memory.used(), used);
  // After another error than out of memory there is no second attempt.
  faults.End();
  int asked = 0;
  const SimFaults others([&asked](std::string_view) {
    ++asked;
    return kCudaInvalidValue;
  });
  EXPECT_EQ(CodeOf(memory.Allocate(100, "view").status()), "device_failed");
  EXPECT_EQ(asked, 1);
}

// H01, H02: a GPU is checked before it is used, and may still fail after the
// check.
TEST_F(HostedStreamTest, AGpuThatDoesNotServeIsNotOpened) {
  const auto message = [] {
    const absl::Status status = OpenGpu().status();
    EXPECT_EQ(CodeOf(status), "no_device") << status;
    return std::string(status.message());
  };
  int calls = 0;
  GpuFacts facts = kHostedGpu;
  facts.driver = 12080;
  facts.error = kCudaInsufficientDriver;
  SetHostedGpu(facts);
  SimFaults counts([&calls](std::string_view) {
    ++calls;
    return 0;
  });
  EXPECT_EQ(
      message(),
      "device cuda: the NVIDIA driver supports CUDA up to 12.8, need 13.0");
  EXPECT_EQ(calls, 0);
  counts.End();
  SetHostedGpu(kHostedGpu);
  const auto message_after = [&](std::string_view refused, int error) {
    const SimFaults faults([refused, error](std::string_view call) {
      return call == refused ? error : kCudaSuccess;
    });
    return message();
  };
  EXPECT_EQ(message_after("create", kCudaNoDevice),  // lost since it was listed
            "device cuda: the NVIDIA driver reports no GPU to this process");
  EXPECT_EQ(message_after("create", kCudaInvalidDevice),
            "device cuda: the GPU cannot be opened: CUDA error 101, refused by "
            "a test");
  EXPECT_EQ(message_after("launch", kCudaNoKernelImage),
            "device cuda: this build has no kernels for the GPU, which has "
            "compute capability 9.0 (refused by a test)");
  EXPECT_TRUE(OpenGpu().ok());
}

TEST_F(HostedStreamTest, ThreadsOfTheDriverTakeNoSignals) {
  bool take = true;
  SimFaults faults([&take](std::string_view call) {
    if (call == "create") take = TakesSignals();
    return kCudaSuccess;
  });
  EXPECT_TRUE(OpenGpu().ok());
  faults.End();
  EXPECT_FALSE(take);
  EXPECT_TRUE(TakesSignals());
}

// A device cannot touch another's memory; only copies can, through the host.
TEST_F(HostedStreamTest, ADeviceTouchesNoOthersMemory) {
  const auto other = MakeHostedStream(Order::kAscending, /*gpu=*/1);
  auto theirs = *DeviceArray<float>::Create(other->memory(), 4, "test");
  EXPECT_NE(&other->memory(), &stream_->memory());
  EXPECT_TRUE(Write(2, 7).ok());
  EXPECT_TRUE(other->Copy(theirs.data() + 1, array_.data() + 2, 4).ok());
  float got = 0;
  EXPECT_TRUE(other->Copy(&got, theirs.data() + 1, 4).ok());
  EXPECT_TRUE(other->Synchronize().ok());
  EXPECT_EQ(got, 7);
  EXPECT_TRUE(stream_->Copy(array_.data() + 5, theirs.data() + 1, 4).ok());
  EXPECT_EQ(Read(5), 7);

  const float* const x = HostAddress(array_.data());
  const auto body = [x] { (void)*static_cast<const volatile float*>(x); };
  EXPECT_EQ(Launch(other->queue().handle(), {}, Call<decltype(body)>{&body}),
            0);
  EXPECT_EQ(CodeOf(other->Synchronize()), "device_lost");
  EXPECT_TRUE(stream_->Synchronize().ok());  // it is another device
  const auto again = MakeHostedStream(Order::kAscending, /*gpu=*/1);
  EXPECT_TRUE(again->Synchronize().ok());
}

// A fault of one device does not affect another.
TEST_F(HostedStreamTest, FaultsAreOfOneDevice) {
  const auto other = MakeHostedStream(Order::kAscending, /*gpu=*/1);
  SimFaults faults(
      [](std::string_view call) {
        return call == "wait" ? kCudaIllegalAddress : kCudaSuccess;
      },
      /*device=*/1);
  EXPECT_EQ(CodeOf(other->Synchronize()), "device_lost");
  EXPECT_EQ(CodeOf(other->queue().Check()), "device_lost");
  EXPECT_TRUE(stream_->Synchronize().ok());
  faults.End();
  EXPECT_TRUE(other->Synchronize().ok());
}

// A device that does not exist cannot be opened.
TEST_F(HostedStreamTest, DevicesAreCounted) {
  GpuFacts facts = kHostedGpu;
  facts.gpus = 2;
  SetHostedGpu(facts);
  EXPECT_EQ(CountGpus(), 2);
  EXPECT_TRUE(OpenGpu(1).ok());
  EXPECT_EQ(
      OpenGpu(2).status().message(),
      "device cuda: the NVIDIA driver reports 2 GPUs to this process, need 3");
  facts.error = kCudaInsufficientDriver;
  SetHostedGpu(facts);
  EXPECT_EQ(CountGpus(), 0);
  SetHostedGpu(kHostedGpu);
}

}  // namespace
}  // namespace tiercel
