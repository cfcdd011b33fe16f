#include "kernels/device/hosted_stream.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/base/error.h"
#include "kernels/device/device_lang.h"
#include "kernels/machine/cuda_stream.h"

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
  volatile float* const x = array_.data();
  const auto body = [x] { x[48] = x[47]; };
  EXPECT_EQ(Launch(stream_->cuda().handle(), {}, Call<decltype(body)>{&body}),
            0);
  EXPECT_EQ(stream_->Synchronize().message(),
            "device cuda: block 0, thread 0: touched an address where nothing "
            "is");
  EXPECT_DEATH(x[0] = 1, "");
}

// As late as CUDA may, with what was there when it was asked for.
TEST_F(HostedStreamTest, NothingIsDoneBeforeSomebodyWaits) {
  float sent = 3;
  float got = 5;
  int calls = 0;
  const auto body = [&calls] { ++calls; };
  EXPECT_TRUE(stream_->Copy(array_.data(), &sent, sizeof(sent)).ok());
  sent = 4;
  EXPECT_EQ(Launch(stream_->cuda().handle(), {.blocks = 2},
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
  EXPECT_EQ(Launch(stream_->cuda().handle(), {}, Call<decltype(body)>{&body}),
            0);
  array_ = {};
  EXPECT_EQ(calls, 1);
}

// Another thread waits for a part of what is queued.
TEST_F(HostedStreamTest, AMarkIsWhatWasQueuedBefore) {
  CudaStream& cuda = stream_->cuda();
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

// What is pinned is read when its turn comes, as it is then.
TEST_F(HostedStreamTest, PinnedMemoryIsTheDevicesToRead) {
  CudaStream& cuda = stream_->cuda();
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
  EXPECT_EQ(HostedPinnedBytes(), 4);
  EXPECT_FALSE(cuda.Pin(memory.data() + 3, 10).ok());
  EXPECT_FALSE(cuda.Pin(memory.data() - 3, 4).ok());
  cuda.Unpin(memory.data());
  EXPECT_EQ(HostedPinnedBytes(), 0);
}

// More lists than the ring holds, each with values of its own; a wait that is
// refused once harms nothing that was sent.
TEST_F(HostedStreamTest, ListsThatWaitAreNotWrittenOver) {
  constexpr size_t kList = 16 << 10;  // floats, a quarter of a half
  constexpr size_t kLists = 24;
  for (const bool refused : {false, true}) {
    auto all = *DeviceArray<float>::Create(
        stream_->memory(), static_cast<int64_t>(kList * kLists), "lists");
    bool refuses = refused;
    SetHostedFaults([&](std::string_view call) {
      return call == "wait" && std::exchange(refuses, false)
                 ? HostedFault::kOnce
                 : HostedFault::kNone;
    });
    std::vector<float> list(kList);
    int failed = 0;
    for (size_t i = 0; i < kLists; ++i) {
      std::fill(list.begin(), list.end(), static_cast<float>(i));
      float* const to = all.data() + i * kList;
      const size_t bytes = kList * sizeof(float);
      if (stream_->Send(to, list.data(), bytes).ok()) continue;
      ++failed;
      EXPECT_TRUE(stream_->Send(to, list.data(), bytes).ok());
    }
    SetHostedFaults(nullptr);
    EXPECT_EQ(failed, refused ? 1 : 0);
    std::vector<float> arrived;
    ASSERT_TRUE(ReadBack(*stream_, all, &arrived).ok());
    for (size_t i = 0; i < arrived.size(); ++i) {
      ASSERT_EQ(arrived[i], static_cast<float>(i / kList)) << i;
    }
  }
}

// ---- Faults ----

TEST_F(HostedStreamTest, EveryCallMayBeRefused) {
  CudaStream& cuda = stream_->cuda();
  const auto body = [] {};
  const auto status_of = [&](std::string_view call) -> absl::Status {
    if (call == "create") return CudaStream::Create().status();
    if (call == "allocate") return cuda.memory().Allocate(1, "x").status();
    if (call == "pin") return cuda.Pin(nullptr, 0);
    if (call == "copy") return cuda.Zero(array_.data(), 4);
    if (call == "wait") return cuda.Synchronize();
    return CudaStatus("x",
                      Launch(cuda.handle(), {}, Call<decltype(body)>{&body}));
  };
  for (const std::string_view call :
       {"create", "allocate", "pin", "copy", "launch", "wait"}) {
    SetHostedFaults([&](std::string_view asked) {
      return asked == call ? HostedFault::kOnce : HostedFault::kNone;
    });
    EXPECT_FALSE(status_of(call).ok()) << call;
    SetHostedFaults(nullptr);
  }
  // Who cannot mark the place waits for more.
  int calls = 0;
  const auto count = [&calls] { ++calls; };
  SetHostedFaults([](std::string_view asked) {
    return asked == "mark" ? HostedFault::kOnce : HostedFault::kNone;
  });
  const uint64_t mark = cuda.Mark();
  EXPECT_EQ(Launch(cuda.handle(), {}, Call<decltype(count)>{&count}), 0);
  EXPECT_TRUE(cuda.Await(mark).ok());
  EXPECT_EQ(calls, 1);
  SetHostedFaults(nullptr);
}

TEST_F(HostedStreamTest, ALostDeviceIsLostToAll) {
  SetHostedFaults([](std::string_view call) {
    return call == "wait" ? HostedFault::kLost : HostedFault::kNone;
  });
  EXPECT_TRUE(stream_->Zero(array_.data(), 4).ok());
  EXPECT_FALSE(stream_->Synchronize().ok());
  EXPECT_FALSE(stream_->Zero(array_.data(), 4).ok());
  EXPECT_EQ(CodeOf(CudaStream::Create().status()), "no_device");
  SetHostedFaults(nullptr);
  EXPECT_TRUE(stream_->Synchronize().ok());
}

}  // namespace
}  // namespace tiercel
