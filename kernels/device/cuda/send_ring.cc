#include "kernels/device/cuda/send_ring.h"

#include <cstdlib>
#include <cstring>

#include "kernels/device/copies.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

constexpr size_t kWord = sizeof(uint32_t);
constexpr size_t kPage = 4096;

}  // namespace

SendRing::~SendRing() {
  if (state_ == State::kPinned) {
    cuda_.Synchronize().IgnoreError();
    cuda_.Unpin(memory_);
  }
  std::free(memory_);
}

void SendRing::Pin() {
  state_ = State::kRefused;
  memory_ = static_cast<std::byte*>(std::aligned_alloc(kPage, 2 * kMostBytes));
  if (memory_ == nullptr || !cuda_.Pin(memory_, 2 * kMostBytes).ok()) return;
  if (cuda_.KernelsSee(memory_)) {
    state_ = State::kPinned;
  } else {
    cuda_.Unpin(memory_);
  }
}

absl::Status SendRing::Send(DevicePtr<void> to, const void* from,
                            size_t bytes) {
  if (state_ == State::kNew) Pin();
  if (state_ == State::kRefused || bytes > kMostBytes || bytes % kWord != 0) {
    return cuda_.Copy(to, from, bytes);
  }
  if (used_ + bytes > kMostBytes) {
    // This half is full, so wait until the other one has been read.
    RETURN_IF_ERROR(cuda_.Await(left_[1 - half_]));
    left_[half_] = cuda_.Mark();
    half_ = 1 - half_;
    used_ = 0;
  }
  std::byte* const sent = memory_ + half_ * kMostBytes + used_;
  used_ += bytes;
  std::memcpy(sent, from, bytes);
  return CudaStatus(
      "Send",
      CopyWordsCuda(cuda_.handle(), reinterpret_cast<const uint32_t*>(sent),
                    static_cast<int64_t>(bytes / kWord), to.As<uint32_t>()));
}

}  // namespace tiercel
