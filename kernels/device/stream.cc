#include "kernels/device/stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/device/copies.h"
#include "kernels/device/cuda/blas_lt.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/cuda/send_ring.h"
#include "kernels/device/device.h"
#include "kernels/device/sim/sim_queue.h"
#include "kernels/system/resource_limits.h"
#include "lib/status/status_macros.h"

namespace tiercel {

absl::StatusOr<std::unique_ptr<Stream>> Stream::Create(const Options& options) {
  ASSIGN_OR_RETURN(const Isa isa, ChooseIsa());
  std::unique_ptr<DeviceQueue> queue;
  if (options.queue == nullptr) {
    const std::unique_ptr<Device> device = Device::Make(options.device);
    if (device->apart()) {
      ASSIGN_OR_RETURN(queue, device->NewQueue());
    }
  }
  absl::StatusOr<std::unique_ptr<BlasLt>> blas = nullptr;
  DeviceQueue* const gpu = queue != nullptr ? queue.get() : options.queue;
  // The library cannot use the host executor's GPU.
  if (options.device == DeviceKind::kCuda && gpu != nullptr &&
      !CudaDriver::IsExecutor()) {
    // handle() selects the stream's GPU, for which the library is created.
    (void)gpu->handle();
    blas = BlasLt::FromEnvironment();
  }
  if (!blas.ok()) return blas.status();
  std::unique_ptr<Stream> stream(new Stream(options, isa, std::move(queue)));
  stream->UseBlas(*std::move(blas));
  return stream;
}

absl::StatusOr<std::unique_ptr<Stream>> Stream::Over(
    std::unique_ptr<DeviceQueue> queue) {
  ASSIGN_OR_RETURN(const Isa isa, ChooseIsa());
  return std::unique_ptr<Stream>(
      new Stream({.device = DeviceKind::kCuda}, isa, std::move(queue)));
}

Stream::Stream(const Options& options, Isa isa,
               std::unique_ptr<DeviceQueue> queue)
    : device_(options.device),
      isa_(isa),
      fast_prompts_(options.fast_prompts),
      own_queue_(std::move(queue)),
      queue_(own_queue_ != nullptr ? own_queue_.get() : options.queue),
      ring_(BodiesOf(device_) == Bodies::kGpu
                ? std::make_unique<SendRing>(*queue_)
                : nullptr),
      own_pool_(options.pool != nullptr
                    ? nullptr
                    : std::make_unique<ThreadPool>(
                          BodiesOf(device_) == Bodies::kGpu ? 1
                          : options.threads > 0             ? options.threads
                                                            : AllowedCpus())),
      pool_(own_pool_ != nullptr ? *own_pool_ : *options.pool),
      memory_(options.memory != nullptr ? *options.memory
              : queue_ != nullptr       ? queue_->memory()
                                        : SystemMemory()),
      cpu_(BodiesOf(device_) == Bodies::kCpuLater
               ? new Stream({.device = DeviceKind::kCpu, .pool = &pool_}, isa,
                            /*queue=*/nullptr)
               : nullptr) {}

Stream::~Stream() {
  // Work that uses the library or the CPU's stream may still be queued.
  if (blas_ != nullptr || cpu_ != nullptr) Synchronize().IgnoreError();
}

void Stream::UseBlas(std::unique_ptr<BlasLt> blas) { blas_ = std::move(blas); }

absl::StatusOr<DevicePtr<std::byte>> Stream::Scratch(size_t bytes) {
  if (bytes <= scratch_.size()) return scratch_.data();
  // It grows by at least half, so that a slowly rising need allocates rarely.
  const size_t wanted = std::max(bytes, scratch_.size() + scratch_.size() / 2);
  scratch_ = {};  // freed first, so that both need not fit at once
  ASSIGN_OR_RETURN(scratch_,
                   DeviceArray<std::byte>::Create(
                       memory_, static_cast<int64_t>(wanted), "scratch"));
  return scratch_.data();
}

absl::Status Stream::Copy(DevicePtr<void> to, const void* from, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();  // there may be no memory at all
  if (queue_ != nullptr) return queue_->Copy(to, from, bytes);
  std::memcpy(to.raw(), from, bytes);
  return absl::OkStatus();
}

absl::Status Stream::Copy(void* to, DevicePtr<const void> from, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  if (queue_ != nullptr) return queue_->Copy(to, from, bytes);
  std::memcpy(to, from.raw(), bytes);
  return absl::OkStatus();
}

absl::Status Stream::Copy(DevicePtr<void> to, DevicePtr<const void> from,
                          size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  if (queue_ != nullptr) return queue_->Copy(to, from, bytes);
  std::memcpy(to.raw(), from.raw(), bytes);
  return absl::OkStatus();
}

absl::Status Stream::CopyColumns(const ColumnsCopy& p) {
  if (p.rows == 0 || p.bytes == 0) return absl::OkStatus();
  if (queue_ != nullptr) return queue_->CopyColumns(p);
  // Fewer bytes are not worth a thread.
  constexpr int64_t kBytes = int64_t{64} << 10;
  pool_.ParallelFor(p.rows, std::max<int64_t>(1, kBytes / p.bytes),
                    [&](int64_t begin, int64_t end, int) {
                      for (int64_t r = begin; r < end; ++r) {
                        std::memcpy((p.to + r * p.to_stride).raw(),
                                    (p.from + r * p.from_stride).raw(),
                                    static_cast<size_t>(p.bytes));
                      }
                    });
  return absl::OkStatus();
}

absl::Status Stream::Send(DevicePtr<void> to, const void* from, size_t bytes) {
  if (bytes == 0 || ring_ == nullptr) return Copy(to, from, bytes);
  return ring_->Send(to, from, bytes);
}

absl::Status Stream::Zero(DevicePtr<void> to, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  if (queue_ != nullptr) return queue_->Zero(to, bytes);
  std::memset(to.raw(), 0, bytes);
  return absl::OkStatus();
}

absl::Status Stream::Synchronize() {
  return queue_ != nullptr ? queue_->Synchronize() : absl::OkStatus();
}

absl::Status Stream::RunLater(std::function<absl::Status(Stream& cpu)> body) {
  return static_cast<SimQueue*>(queue_)->PushOp(
      [body = std::move(body), cpu = cpu_.get()] { return body(*cpu); });
}

}  // namespace tiercel
