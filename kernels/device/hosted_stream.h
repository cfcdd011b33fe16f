#ifndef TIERCEL_KERNELS_DEVICE_HOSTED_STREAM_H_
#define TIERCEL_KERNELS_DEVICE_HOSTED_STREAM_H_

#include <memory>

#include "kernels/device/host_executor.h"
#include "kernels/machine/stream.h"

namespace tiercel {

// A stream on kCuda whose kernels the executor runs, as late as CUDA may: when
// somebody waits, or frees memory. Until then the host reads 0xff where a copy
// is to arrive. Its memory faults when the host touches it; an array in it
// starts as NaN and ends at a page that faults for kernels too, and what was
// written beyond it, as far as it is rounded up to kDeviceAlignment,
// Synchronize reports.
std::unique_ptr<Stream> MakeHostedStream(Order order);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_HOSTED_STREAM_H_
