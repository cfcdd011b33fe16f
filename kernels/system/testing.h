#ifndef TIERCEL_KERNELS_SYSTEM_TESTING_H_
#define TIERCEL_KERNELS_SYSTEM_TESTING_H_

// Helpers for tests of ops only.

#include <stdlib.h>

#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/executor/hosted_stream.h"
#include "kernels/device/stream.h"
#include "kernels/system/isa.h"
#include "lib/status/error.h"

namespace tiercel {

// The kernels that are linked to this test: those of a GPU, or the same run by
// the host executor, so that tests can be built without CUDA.
#if defined(TIERCEL_HOSTED)
inline constexpr bool kIsHosted = true;
inline constexpr bool kHasKernels = true;
#elif defined(TIERCEL_CUDA)
inline constexpr bool kIsHosted = false;
inline constexpr bool kHasKernels = true;
#else
inline constexpr bool kIsHosted = false;
inline constexpr bool kHasKernels = false;
#endif

// The initial value of outputs, so that an element that was not written is
// noticed.
inline constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();

inline std::unique_ptr<Stream> MakeStream(DeviceKind device, int threads = 1,
                                          Isa isa = SupportedIsas().back()) {
  const char* forced = getenv("TIERCEL_ISA");
  const std::string before = forced == nullptr ? "" : forced;
  setenv("TIERCEL_ISA", std::string(NameOf(isa)).c_str(), /*overwrite=*/1);
  absl::StatusOr<std::unique_ptr<Stream>> stream =
      Stream::Create({device, threads});
  setenv("TIERCEL_ISA", before.c_str(), /*overwrite=*/1);
  EXPECT_TRUE(stream.ok()) << stream.status();
  return std::move(stream).value();
}

// Returns true if a test may take minutes, as tests/full.sh wants.
inline bool TriesAll() { return getenv("TIERCEL_ALL_SHAPES") != nullptr; }

// Returns true under a sanitizer, which makes a test ten times slower, so that
// it tries less.
inline bool TriesLess() {
#ifdef TIERCEL_SANITIZED
  return !TriesAll();
#else
  return false;
#endif
}

// The values to try: all if a test may take minutes, else these few.
inline std::vector<int64_t> InShort(std::vector<int64_t> all,
                                    std::vector<int64_t> few) {
  return TriesAll() ? all : few;
}

// The values to try: all, or these few if a test tries less.
inline std::vector<int64_t> Some(std::vector<int64_t> all,
                                 std::vector<int64_t> few) {
  return TriesLess() ? few : all;
}
// The values to try: all, or the first, the middle and the last if a test tries
// less.
inline std::vector<int64_t> Some(std::vector<int64_t> all) {
  if (!TriesLess() || all.size() <= 3) return all;
  return {all.front(), all[all.size() / 2], all.back()};
}

inline bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() ||
          std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

inline bool SameBytes(const std::vector<std::byte>& a,
                      const std::vector<std::byte>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

// For INSTANTIATE_TEST_SUITE_P over SupportedIsas().
inline std::string NameOfIsa(const testing::TestParamInfo<Isa>& isa) {
  return std::string(NameOf(isa.param));
}

// A device and ISA on which the cases of an op run.
struct Backend {
  DeviceKind device;
  Isa isa;
  Order order = Order::kAscending;  // order of the host executor
};

// The bodies that are compared with the reference: every ISA of the CPU, the
// highest as a simulated device runs it, and for ops with a kernel CUDA or the
// host executor, whichever this build has. In
// the mixed order of the host executor each of two threads is first somewhere,
// so the other orders are left to tests that may take minutes.
inline std::vector<Backend> FastBackends() {
  std::vector<Backend> backends;
  for (Isa isa : SupportedIsas()) backends.push_back({DeviceKind::kCpu, isa});
  backends.push_back({DeviceKind::kSim, SupportedIsas().back()});
  if (!kHasKernels) return backends;
  for (Order order : {Order::kAscending, Order::kDescending, Order::kMixed}) {
    if (kIsHosted ? order != Order::kMixed && !TriesAll()
                  : order != Order::kAscending) {
      continue;
    }
    backends.push_back({DeviceKind::kCuda, SupportedIsas().back(), order});
  }
  return backends;
}

// The fast bodies of FastBackends, and the reference.
inline std::vector<Backend> Backends() {
  std::vector<Backend> backends = FastBackends();
  backends.insert(backends.begin(), {DeviceKind::kRef, Isa::kPortable});
  return backends;
}

// The backends of FastBackends that are GPUs.
inline std::vector<Backend> Gpus() {
  std::vector<Backend> backends = FastBackends();
  std::erase_if(backends, [](const Backend& backend) {
    return backend.device != DeviceKind::kCuda;
  });
  return backends;
}

// For INSTANTIATE_TEST_SUITE_P over Backends().
inline std::string NameOfBackend(const testing::TestParamInfo<Backend>& info) {
  const auto& [device, isa, order] = info.param;
  if (device == DeviceKind::kCpu) return std::string(NameOf(isa));
  if (device != DeviceKind::kCuda || !kIsHosted) return NameOf(device);
  return order == Order::kAscending    ? "hosted_ascending"
         : order == Order::kDescending ? "hosted_descending"
                                       : "hosted_mixed";
}

// Skips CUDA if there is no GPU; tests/gpu_check.sh counts that as a failure.
class BackendTest : public testing::TestWithParam<Backend> {
 protected:
  // Returns true if cases take so long here that only some are tried: on the
  // host executor, and where each multiply-add is a call.
  static bool TriesFew() {
    return TriesLess() ||
           (kIsHosted && GetParam().device == DeviceKind::kCuda) ||
           (GetParam().isa == Isa::kPortable && !TriesAll());
  }
  static std::vector<int64_t> Fewer(std::vector<int64_t> all,
                                    std::vector<int64_t> few) {
    return TriesFew() ? few : all;
  }
  // The numbers of threads to try: all, or the last if TriesFew().
  static std::vector<int> Threads(std::vector<int> all) {
    if (TriesFew()) all.erase(all.begin(), all.end() - 1);
    return all;
  }

  // Returns true if its multiply-adds round once, so that it has the
  // reference's bits.
  static bool HasFma() {
    return GetParam().device == DeviceKind::kRef ||
           GetParam().device == DeviceKind::kCuda ||
           GetParam().isa != Isa::kPortable;
  }

  void SetUp() override {
    if (GetParam().device != DeviceKind::kCuda) return;
    const absl::Status status = Stream::Create({DeviceKind::kCuda}).status();
    if (CodeOf(status) == "no_device") GTEST_SKIP() << status.message();
  }

  static std::unique_ptr<Stream> NewStream(int threads = 1) {
    if constexpr (kIsHosted) {
      if (GetParam().device == DeviceKind::kCuda) {
        return MakeHostedStream(GetParam().order);
      }
    }
    return MakeStream(GetParam().device, threads, GetParam().isa);
  }
};

// A test of an op whose bits do not depend on threads. It has the reference,
// and the backend with one thread and with three.
class ThreeStreamsTest : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped()) return;
    one_ = NewStream(1);
    three_ = NewStream(3);
  }

  const std::unique_ptr<Stream> ref_ = MakeStream(DeviceKind::kRef);
  std::unique_ptr<Stream> one_;
  std::unique_ptr<Stream> three_;
};

// A copy of an array in memory that the ops of a stream can access.
template <typename T>
class OnDevice {
 public:
  OnDevice(Stream& stream, std::vector<T> values)
      : stream_(stream), host_(std::move(values)) {
    if (stream.on_host()) return;
    absl::StatusOr<DeviceArray<T>> array = DeviceArray<T>::Create(
        stream.memory(), static_cast<int64_t>(host_.size()), "test array");
    EXPECT_TRUE(array.ok()) << array.status();
    device_ = std::move(array).value();
    const absl::Status status =
        stream.Copy(device_.data(), host_.data(), host_.size() * sizeof(T));
    EXPECT_TRUE(status.ok()) << status;
  }

  DevicePtr<T> data() {
    return device_.empty() ? InPlace(host_.data()) : device_.data();
  }

  // Returns the contents after all queued work.
  std::vector<T> Read() {
    absl::Status status =
        stream_.Copy(host_.data(), data(), device_.size() * sizeof(T));
    EXPECT_TRUE(status.ok()) << status;
    status = stream_.Synchronize();
    EXPECT_TRUE(status.ok()) << status;
    return host_;
  }

 private:
  Stream& stream_;
  std::vector<T> host_;
  DeviceArray<T> device_;  // empty if the device computes in place
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SYSTEM_TESTING_H_
