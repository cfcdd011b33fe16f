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

// A stream on kCuda whose kernels the executor runs, as late as CUDA may: when
// somebody waits, or frees memory. Until then the host reads 0xff where a copy
// is to arrive. Its memory faults when the host touches it; an array in it
// starts as NaN and ends at a page that faults for kernels too, and what was
// written beyond it, as far as it is rounded up to kDeviceAlignment,
// Synchronize reports. A kernel's fault loses the device, as it does with CUDA,
// until the next of these is made: then it is as new.
//
// With SetHostedDelays a thread of the stream's own works the queue off too,
// after delays. With -fsanitize=thread memory is open then, and what two
// streams do shows as a race unless a wait orders it; so does what the host
// does, where it asks the device nothing in between. Elsewhere locks of the
// queue order that, and only bytes can be wrong.
//
// There are several devices, by numbers. None can touch the memory of another:
// copies between two go through the host.
std::unique_ptr<Stream> MakeHostedStream(Order order, int gpu = 0);

// Memory of the host that is pinned for hosted devices.
int64_t HostedPinnedBytes();

// ---- For tests ----

// What who looks for a hosted device is told of it.
inline constexpr GpuFacts kHostedGpu = {
    .runtime = 13000, .driver = 13000, .gpus = 4, .capability = 90};
void SetHostedGpu(const GpuFacts& facts);

// Streams that are made from now on have such a thread, whose delays follow
// from the seed; 0: they have none.
void SetHostedDelays(uint64_t seed);

// Queues `work` of a library that is played. The stream does it when it comes
// to it, while the device's memory is shut (hosted_memory.h opens it); it may
// wait, and returns a cudaError_t.
void QueueHostedWork(CUstream_st* stream, std::function<int()> work);
// Does what is queued in a stream, as the device does by itself.
void RunHostedStream(CUstream_st* stream);

// Asks `fault` before every call of the door ("create", "check", "free",
// "allocate", "pin", "see", "copy", "launch", "mark", "wait") from now on, on
// the thread that makes it, for the cudaError_t that it ends with (0: it is
// made); null: all are made. With an error that loses a device all its calls
// end from then on. A device that was lost is there again.
void SetHostedFaults(const std::function<int(std::string_view call)>& fault);
// Asks it before the calls of one device alone.
void SetHostedFaultsOf(int gpu,
                       std::function<int(std::string_view call)> fault);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_HOSTED_STREAM_H_
