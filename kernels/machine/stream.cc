#include "kernels/machine/stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/machine/blas_lt.h"
#include "kernels/machine/cuda_stream.h"
#include "kernels/machine/resource_limits.h"
#include "kernels/machine/send_ring.h"
#include "lib/status/status_macros.h"

namespace tiercel {

absl::StatusOr<std::unique_ptr<Stream>> Stream::Create(const Options& options) {
  ASSIGN_OR_RETURN(const Isa isa, ChooseIsa());
  std::unique_ptr<CudaStream> cuda;
  if (options.device == Device::kCuda && options.cuda == nullptr) {
    ASSIGN_OR_RETURN(cuda, CudaStream::Create());
  }
  absl::StatusOr<std::unique_ptr<BlasLt>> blas = nullptr;
  // The library cannot use a simulated GPU.
  if (options.device == Device::kCuda && !CudaStream::IsSimulated()) {
    // handle() selects the stream's GPU, for which the library is created.
    (void)(cuda != nullptr ? *cuda : *options.cuda).handle();
    blas = BlasLt::FromEnvironment();
  }
  if (!blas.ok()) return blas.status();
  std::unique_ptr<Stream> stream(new Stream(options, isa, std::move(cuda)));
  stream->UseBlas(*std::move(blas));
  return stream;
}

absl::StatusOr<std::unique_ptr<Stream>> Stream::Over(
    std::unique_ptr<CudaStream> cuda) {
  ASSIGN_OR_RETURN(const Isa isa, ChooseIsa());
  return std::unique_ptr<Stream>(
      new Stream({.device = Device::kCuda}, isa, std::move(cuda)));
}

Stream::Stream(const Options& options, Isa isa,
               std::unique_ptr<CudaStream> cuda)
    : device_(options.device),
      isa_(isa),
      own_cuda_(std::move(cuda)),
      cuda_(own_cuda_ != nullptr ? own_cuda_.get() : options.cuda),
      ring_(cuda_ != nullptr ? std::make_unique<SendRing>(*cuda_) : nullptr),
      own_pool_(options.pool != nullptr
                    ? nullptr
                    : std::make_unique<ThreadPool>(cuda_ != nullptr ? 1
                                                   : options.threads > 0
                                                       ? options.threads
                                                       : AllowedCpus())),
      pool_(own_pool_ != nullptr ? *own_pool_ : *options.pool),
      memory_(options.memory != nullptr ? *options.memory
              : cuda_ != nullptr        ? cuda_->memory()
                                        : SystemMemory()) {}

Stream::~Stream() {
  // Products of the library may still be queued.
  if (blas_ != nullptr) Synchronize().IgnoreError();
}

void Stream::UseBlas(std::unique_ptr<BlasLt> blas) { blas_ = std::move(blas); }

absl::StatusOr<std::byte*> Stream::Scratch(size_t bytes) {
  if (bytes <= scratch_.size()) return scratch_.data();
  // It grows by at least half, so that a slowly rising need allocates rarely.
  const size_t wanted = std::max(bytes, scratch_.size() + scratch_.size() / 2);
  scratch_ = {};  // freed first, so that both need not fit at once
  ASSIGN_OR_RETURN(scratch_,
                   DeviceArray<std::byte>::Create(
                       memory_, static_cast<int64_t>(wanted), "scratch"));
  return scratch_.data();
}

absl::Status Stream::Copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();  // there may be no memory at all
  if (cuda_ != nullptr) return cuda_->Copy(to, from, bytes);
  std::memcpy(to, from, bytes);
  return absl::OkStatus();
}

absl::Status Stream::Send(void* to, const void* from, size_t bytes) {
  if (bytes == 0 || ring_ == nullptr) return Copy(to, from, bytes);
  return ring_->Send(to, from, bytes);
}

absl::Status Stream::Zero(void* to, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  if (cuda_ != nullptr) return cuda_->Zero(to, bytes);
  std::memset(to, 0, bytes);
  return absl::OkStatus();
}

absl::Status Stream::Synchronize() {
  return cuda_ != nullptr ? cuda_->Synchronize() : absl::OkStatus();
}

}  // namespace tiercel
