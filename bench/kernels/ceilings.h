#ifndef TIERCEL_BENCH_KERNELS_CEILINGS_H_
#define TIERCEL_BENCH_KERNELS_CEILINGS_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "bench/kernels/inputs.h"

namespace tiercel {

// A figure of the machine itself, which no op on it exceeds.
struct Ceiling {
  std::string name;
  double value;
  std::string unit;
};

// Measures the bounds of all ops: copies and reads in the device's memory,
// copies over the link (from pinned memory 16 MiB and `large_bytes` at a time,
// up, down and both at once; from pageable memory), reads of pinned memory by a
// kernel, launches one by one and as a graph, and pinning. Calls `found` with
// each figure at once, and `refused` for those that this machine refuses.
// Errors: device_lost.
absl::Status MeasureCeilings(
    Stream& stream, Inputs& inputs, int64_t large_bytes,
    absl::FunctionRef<void(const Ceiling&)> found,
    absl::FunctionRef<void(const std::string& name, const absl::Status&)>
        refused);

}  // namespace tiercel

#endif  // TIERCEL_BENCH_KERNELS_CEILINGS_H_
