#ifndef TIERCEL_KERNELS_DEVICE_HOSTED_STREAM_H_
#define TIERCEL_KERNELS_DEVICE_HOSTED_STREAM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

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

// Memory of the host that is pinned for the hosted device.
int64_t HostedPinnedBytes();

// What the hosted device refuses, for tests.
enum class HostedFault {
  kNone,
  kOnce,  // this call, as CUDA does where nothing else is harmed
  kLost,  // this call and all that follow
};

// Asks `fault` before every call of the door ("create", "allocate", "pin",
// "copy", "launch", "mark", "wait") from now on, on the thread that makes it;
// null: nothing is refused. A device that was lost is there again.
void SetHostedFaults(std::function<HostedFault(std::string_view call)> fault);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_HOSTED_STREAM_H_
