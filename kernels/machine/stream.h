#ifndef TIERCEL_KERNELS_MACHINE_STREAM_H_
#define TIERCEL_KERNELS_MACHINE_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/machine/device_memory.h"
#include "kernels/machine/isa.h"
#include "kernels/machine/thread_pool.h"
#include "lib/status/status_macros.h"

namespace tiercel {

class BlasLt;
class CudaStream;
class SendRing;

enum class Device {
  kCpu,   // fast bodies; the reference where an op has none
  kRef,   // every op by its plain reference
  kCuda,  // a GPU; what ops are given lies in its memory
};

// Where ops run: a device, its instruction set, its threads and its
// scratch memory. Ops on one stream run in the order of the calls; a stream is
// used from one thread at a time. Lives longer than anything queued on it.
class Stream {
 public:
  struct Options {
    Device device = Device::kCpu;
    int threads = 0;  // of the CPU; 0: as many as the process may use
    DeviceMemory* memory = nullptr;  // of scratch; null: the device's own
    ThreadPool* pool =
        nullptr;  // which outlives it; null: `threads` of its own
    // On kCuda, the queue of others that this is another end of; null: one of
    // its own. It outlives this.
    CudaStream* cuda = nullptr;
  };

  // Errors: TIERCEL_ISA names an ISA that is not there; no_device; on kCuda,
  // where no CPU plays the GPU, those of BlasLt::FromEnvironment.
  static absl::StatusOr<std::unique_ptr<Stream>> Create(const Options& options);
  // A stream on kCuda over `cuda`, for tests that bring their own.
  static absl::StatusOr<std::unique_ptr<Stream>> Over(
      std::unique_ptr<CudaStream> cuda);

  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Device device() const { return device_; }
  // The memory of the device is the host's, and an op is done when it returns.
  bool on_host() const { return cuda_ == nullptr; }
  Isa isa() const { return isa_; }
  ThreadPool& pool() { return pool_; }
  CudaStream& cuda() { return *cuda_; }  // on kCuda only
  DeviceMemory& memory() { return memory_; }
  // What multiplies prompts of F16 and BF16 on kCuda, faster perhaps and not
  // bit for bit; null: kernels do.
  BlasLt* blas() { return blas_.get(); }
  void UseBlas(std::unique_ptr<BlasLt> blas);

  // At least `bytes` of scratch memory, 64-byte aligned, contents undefined.
  // The next call of Scratch ends its life: an op asks once and divides.
  // Errors: out_of_memory.
  absl::StatusOr<std::byte*> Scratch(size_t bytes);
  // Take and give the memory of Scratch; another stream of the same queue may
  // have it where no call of this one is under way.
  void UseScratch(DeviceArray<std::byte> scratch) {
    scratch_ = std::move(scratch);
  }
  DeviceArray<std::byte> ReleaseScratch() {
    return std::exchange(scratch_, {});
  }

  // Copies between memory of the device and of the host, either way, after
  // what was queued before. Both ends stay as they are until Synchronize, but
  // for what comes from pageable memory of the host: it has been read.
  absl::Status Copy(void* to, const void* from, size_t bytes);
  // Copies what a kernel needs next from the host to the device, after what was
  // queued before; `from` has been read. Lists of up to SendRing::kMostBytes
  // wait for no copy of other queues.
  absl::Status Send(void* to, const void* from, size_t bytes);
  // Sets `bytes` of device memory to zero, after what was queued before.
  absl::Status Zero(void* to, size_t bytes);
  // Returns when all that was queued is done, or has failed (device_failed).
  absl::Status Synchronize();

 private:
  Stream(const Options& options, Isa isa, std::unique_ptr<CudaStream> cuda);

  const Device device_;
  const Isa isa_;
  const std::unique_ptr<CudaStream> own_cuda_;  // null: another's is used
  CudaStream* const cuda_;                      // null: this is on the host
  const std::unique_ptr<SendRing> ring_;        // null likewise
  std::unique_ptr<BlasLt> blas_;
  const std::unique_ptr<ThreadPool> own_pool_;  // null: another's is used
  ThreadPool& pool_;
  DeviceMemory& memory_;
  DeviceArray<std::byte> scratch_;
};

// A copy of `count` elements of the host's in scratch memory, for a kernel.
// Errors: out_of_memory, device_failed.
template <typename T>
absl::StatusOr<const T*> SendToScratch(Stream& stream, const T* from,
                                       int64_t count) {
  const size_t bytes = static_cast<size_t>(count) * sizeof(T);
  ASSIGN_OR_RETURN(std::byte * scratch, stream.Scratch(bytes));
  RETURN_IF_ERROR(stream.Send(scratch, from, bytes));
  return reinterpret_cast<const T*>(scratch);
}

// What an array holds after all that was queued; waits for that. Errors: those
// of Copy and Synchronize.
template <typename T>
absl::Status ReadBack(Stream& stream, const DeviceArray<T>& array,
                      std::vector<T>* to) {
  to->resize(array.size());
  RETURN_IF_ERROR(
      stream.Copy(to->data(), array.data(), array.size() * sizeof(T)));
  return stream.Synchronize();
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_MACHINE_STREAM_H_
