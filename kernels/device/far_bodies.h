#ifndef TIERCEL_KERNELS_DEVICE_FAR_BODIES_H_
#define TIERCEL_KERNELS_DEVICE_FAR_BODIES_H_

#include "kernels/device/host_executor.h"

namespace tiercel {

// Queues body(), a body of the CPU in the place of a kernel, on a stream. It is
// copied, so its captures must be values. Returns a cudaError_t.
//
// The far device is the hosted one (hosted_stream.h) with such bodies. Its
// memory faults and its work is done as late, but it is as fast as plain loops.
// So whole suites of the runtime run on it, for which the executor would take
// hours.
template <typename Body>
int Queue(CUstream_st* stream, Body body) {
  const auto run = [body] {
    body();
    return 0;
  };
  return stream->keep == nullptr ? run() : stream->keep(run);
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_FAR_BODIES_H_
