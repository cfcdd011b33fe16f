#include "kernels/device/sim/sim_queue.h"

#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/device/cuda/cuda_error.h"
#include "kernels/device/op.h"
#include "kernels/device/stream.h"
#include "kernels/layer/swiglu.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

class SimQueueTest : public testing::Test {
 protected:
  ~SimQueueTest() override { RestoreSimDevices(); }

  DeviceArray<float> NewArray(int64_t size) {
    return *DeviceArray<float>::Create(stream_->memory(), size, "test");
  }
  float Read(const DeviceArray<float>& array, int64_t i) {
    float x = 0;
    EXPECT_TRUE(stream_->Copy(&x, array.data() + i, sizeof(x)).ok());
    EXPECT_TRUE(stream_->Synchronize().ok());
    return x;
  }

  const std::unique_ptr<Stream> stream_ = MakeStream(DeviceKind::kSim);
};

TEST_F(SimQueueTest, AnArrayStartsAsNanAndTheHostCannotTouchIt) {
  DeviceArray<float> array = NewArray(33);
  EXPECT_TRUE(std::isnan(Read(array, 0)));
  EXPECT_TRUE(std::isnan(Read(array, 32)));
#if !defined(__SANITIZE_THREAD__)  // for TSan memory is open
  volatile float* const x = HostAddress(array.data());
  EXPECT_DEATH(x[0] = 1, "");
  EXPECT_DEATH((void)(x[32] + 1), "");
#endif
}

#if !defined(__SANITIZE_THREAD__)
// Arrays lie beside each other, so a write after the end of one does not fault.
TEST_F(SimQueueTest, AWriteAfterTheEndIsReported) {
  DeviceArray<float> array = NewArray(33);
  const DeviceArray<float> next = NewArray(5);
  const float one = 1;
  ASSERT_TRUE(stream_->Copy(array.data() + 33, &one, sizeof(one)).ok());
  EXPECT_EQ(stream_->Synchronize().message(),
            "byte 132 of an array of 132 was written");
}

// Memory that was freed, and is taken again, is as new.
TEST_F(SimQueueTest, TakenAgainItIsAsNew) {
  for (const int64_t size : {int64_t{100}, int64_t{3} << 20}) {
    DeviceArray<float> array = NewArray(size);
    const DeviceArray<float> behind = NewArray(7);
    ASSERT_TRUE(
        stream_->Zero(array.data(), static_cast<size_t>(size) * 4).ok());
    EXPECT_EQ(Read(array, size - 1), 0);
    const DevicePtr<float> was = array.data();
    array = {};
    array = NewArray(size);
    EXPECT_EQ(array.data(), was);
    EXPECT_TRUE(std::isnan(Read(array, 0)));
    EXPECT_TRUE(std::isnan(Read(array, size - 1)));
  }
}
#endif

// An op's parameters are those of the call, and its work is done when a thread
// waits.
TEST_F(SimQueueTest, AnOpIsDoneLater) {
  OnDevice<float> gate(*stream_, {1, 2});
  OnDevice<float> up(*stream_, {3, 4});
  OnDevice<float> out(*stream_, {kPoison, kPoison});
  {
    SwigluParams p = {gate.data(), up.data(), 1, 2, out.data()};
    ASSERT_TRUE(Swiglu(*stream_, p).ok());
    p = {};
  }
  float early = 5;
  ASSERT_TRUE(stream_->Copy(&early, out.data(), sizeof(early)).ok());
  EXPECT_TRUE(std::isnan(early));
  ASSERT_TRUE(stream_->Synchronize().ok());
  EXPECT_FLOAT_EQ(early, 3 / (1 + std::exp(-1.0f)));
}

struct Doubling {
  const int64_t* list;
  int64_t count;
  int64_t* sum;
};

TEST_F(SimQueueTest, ListsOfTheHostAreThoseOfTheCall) {
  const OpBodies<Doubling> op = {
      .reference = nullptr,
      .cpu =
          [](Stream&, const Doubling& p) {
            for (int64_t i = 0; i < p.count; ++i) *p.sum += 2 * p.list[i];
            return absl::OkStatus();
          },
      .gpu = nullptr,
      .keep = [](Doubling& p,
                 HostLists& lists) { p.list = lists.Keep(p.list, p.count); }};
  int64_t sum = 0;
  {
    std::vector<int64_t> list = {1, 10, 100};
    ASSERT_TRUE(
        tiercel::Run(op, *stream_, Doubling{list.data(), 3, &sum}).ok());
    list.assign(3, 7);
  }
  EXPECT_EQ(sum, 0);
  ASSERT_TRUE(stream_->Synchronize().ok());
  EXPECT_EQ(sum, 222);
}

TEST_F(SimQueueTest, AnErrorOfAnOpLosesTheDevice) {
  ASSERT_TRUE(stream_
                  ->RunLater([](Stream&) {
                    return UsageError("invalid_sizes", "it is wrong");
                  })
                  .ok());
  const absl::Status status = stream_->Synchronize();
  EXPECT_EQ(CodeOf(status), "device_lost");
  EXPECT_NE(status.message().find("it is wrong"), std::string::npos) << status;
  EXPECT_EQ(CodeOf(stream_->Synchronize()), "device_lost");
}

// Work that was queued before the loss may be over memory that is gone.
TEST_F(SimQueueTest, ALostDeviceThatIsRestoredForgetsItsWork) {
  const std::unique_ptr<Stream> other = MakeStream(DeviceKind::kSim);
  int done = 0;
  ASSERT_TRUE(other
                  ->RunLater([&done](Stream&) {
                    ++done;
                    return absl::OkStatus();
                  })
                  .ok());
  ASSERT_TRUE(stream_
                  ->RunLater([](Stream&) {
                    return UsageError("invalid_sizes", "it is wrong");
                  })
                  .ok());
  EXPECT_EQ(CodeOf(stream_->Synchronize()), "device_lost");
  RestoreSimDevices();
  EXPECT_TRUE(other->Synchronize().ok());
  EXPECT_EQ(done, 0);
}

TEST_F(SimQueueTest, EveryCallMayBeRefused) {
  DeviceArray<float> array = NewArray(4);
  for (const char* refused : {"copy", "launch", "wait"}) {
    const SimFaults faults([refused](std::string_view call) {
      return call == refused ? kCudaInvalidValue : kCudaSuccess;
    });
    absl::Status status = stream_->Zero(array.data(), 4);
    status.Update(stream_->RunLater([](Stream&) { return absl::OkStatus(); }));
    status.Update(stream_->Synchronize());
    EXPECT_EQ(CodeOf(status), "device_failed") << refused;
  }
}

// With delays all is done at some time, without a thread that waits.
TEST_F(SimQueueTest, AWorkerDoesItAfterDelays) {
  const auto queue = SimQueue::Create(/*device=*/1, /*seed=*/3);
  ASSERT_TRUE(queue.ok()) << queue.status();
  std::atomic<int> done = 0;
  for (int i = 0; i < 100; ++i) {
    (*queue)->Push([&done] {
      ++done;
      return 0;
    });
  }
  while (done < 100) std::this_thread::yield();
  EXPECT_TRUE((*queue)->Synchronize().ok());
}

}  // namespace
}  // namespace tiercel
