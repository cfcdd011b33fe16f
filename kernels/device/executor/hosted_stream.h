#ifndef TIERCEL_KERNELS_DEVICE_EXECUTOR_HOSTED_STREAM_H_
#define TIERCEL_KERNELS_DEVICE_EXECUTOR_HOSTED_STREAM_H_

#include <functional>
#include <memory>

#include "kernels/device/cuda/cuda_error.h"
#include "kernels/device/executor/host_executor.h"
#include "kernels/device/sim/sim_queue.h"
#include "kernels/device/stream.h"

namespace tiercel {

// A stream on kCuda over a simulated device (SimQueue) whose kernels the
// executor runs. A kernel's fault loses the device, as with CUDA, until the
// next of these streams is made: then it is as new.
std::unique_ptr<Stream> MakeHostedStream(Order order, int gpu = 0);

// ---- For tests ----

// The facts about hosted devices, as GpuFacts reports them.
inline constexpr GpuFacts kHostedGpu = {
    .runtime = 13000, .driver = 13000, .gpus = 4, .capability = 90};
void SetHostedGpu(const GpuFacts& facts);

// Queues `work` of a simulated library. The stream does it in its turn, while
// the device's memory is closed (sim_memory.h opens it). It may wait, and
// returns a cudaError_t.
void QueueHostedWork(CUstream_st* stream, std::function<int()> work);
// Does the queued work of a stream, as a device does by itself.
void RunHostedStream(CUstream_st* stream);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_EXECUTOR_HOSTED_STREAM_H_
