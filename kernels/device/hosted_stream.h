#ifndef TIERCEL_KERNELS_DEVICE_HOSTED_STREAM_H_
#define TIERCEL_KERNELS_DEVICE_HOSTED_STREAM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "kernels/device/host_executor.h"
#include "kernels/machine/cuda_error.h"
#include "kernels/machine/stream.h"

namespace tiercel {

// A stream on kCuda whose kernels the executor runs as late as CUDA may: when a
// thread waits, or frees memory. Until then the host reads 0xff in the target
// of a copy. Device memory faults when the host touches it. An array in it
// starts as NaN and ends at a page that faults for kernels too; Synchronize
// reports writes between its end and that page (sizes are rounded up to
// kDeviceAlignment). A kernel's fault loses the device, as with CUDA, until the
// next of these streams is made: then it is as new.
//
// With SetHostedDelays a worker thread of the stream does the queued work too,
// after delays. With -fsanitize=thread memory is open then, and TSan reports a
// race between two streams unless a wait orders them, or between a stream and
// the host unless the host calls the device in between. Without TSan the
// queue's locks order all that, and a fault shows as wrong bytes only.
//
// There are several devices, by numbers. None can touch the memory of another:
// copies between two go through the host.
std::unique_ptr<Stream> MakeHostedStream(Order order, int gpu = 0);

// Memory of the host that is pinned for hosted devices.
int64_t HostedPinnedBytes();

// ---- For tests ----

// The facts about hosted devices, as GpuFacts reports them.
inline constexpr GpuFacts kHostedGpu = {
    .runtime = 13000, .driver = 13000, .gpus = 4, .capability = 90};
void SetHostedGpu(const GpuFacts& facts);

// Streams that are made from now on have a worker thread, whose delays follow
// from the seed; 0: they have none.
void SetHostedDelays(uint64_t seed);

// Queues `work` of a simulated library. The stream does it in its turn, while
// the device's memory is closed (hosted_memory.h opens it). It may wait, and
// returns a cudaError_t.
void QueueHostedWork(CUstream_st* stream, std::function<int()> work);
// Does the queued work of a stream, as a device does by itself.
void RunHostedStream(CUstream_st* stream);

// From now on calls `fault` before every call to a device ("create", "check",
// "free", "allocate", "pin", "see", "copy", "launch", "mark", "wait"), on the
// thread that makes it. It returns the cudaError_t of the call, or 0, and the
// call is made. Null: all calls are made. After an error that loses a device,
// all calls to that device return it. A device that was lost before is usable
// again.
void SetHostedFaults(const std::function<int(std::string_view call)>& fault);
// Calls `fault` as SetHostedFaults does, but only before calls to device `gpu`.
void SetHostedFaultsOf(int gpu,
                       std::function<int(std::string_view call)> fault);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_HOSTED_STREAM_H_
