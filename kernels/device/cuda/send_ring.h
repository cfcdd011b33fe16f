#ifndef TIERCEL_KERNELS_DEVICE_CUDA_SEND_RING_H_
#define TIERCEL_KERNELS_DEVICE_CUDA_SEND_RING_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/device_ptr.h"

namespace tiercel {

// Pinned memory through which small lists are sent to a GPU. A copy would wait
// behind the upload of a layer of KV, for tens of milliseconds; a kernel that
// reads the host's memory does not.
class SendRing {
 public:
  // Larger lists are sent by a copy.
  static constexpr size_t kMostBytes = size_t{256} << 10;

  explicit SendRing(DeviceQueue& cuda) : cuda_(cuda) {}
  ~SendRing();
  SendRing(const SendRing&) = delete;
  SendRing& operator=(const SendRing&) = delete;

  // Does the work of Stream::Send.
  absl::Status Send(DevicePtr<void> to, const void* from, size_t bytes);

 private:
  enum class State { kNew, kPinned, kRefused };

  void Pin();

  DeviceQueue& cuda_;
  State state_ = State::kNew;
  std::byte* memory_ = nullptr;        // two halves of kMostBytes
  size_t half_ = 0;                    // the half that is being filled
  size_t used_ = 0;                    // bytes used in it
  std::array<uint64_t, 2> left_ = {};  // mark of each half when it was full
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_CUDA_SEND_RING_H_
