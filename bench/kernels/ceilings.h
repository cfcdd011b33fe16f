#ifndef TIERCEL_BENCH_KERNELS_CEILINGS_H_
#define TIERCEL_BENCH_KERNELS_CEILINGS_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "bench/kernels/inputs.h"

namespace tiercel {

// A figure of the machine itself, which nothing on it exceeds.
struct Ceiling {
  std::string name;
  double value;
  std::string unit;
};

// Measures what bounds every op: copies and reads in the device's memory,
// copies over the link (of pinned memory 16 MiB and `large_bytes` at a time,
// up, down and both at once; of pageable memory), reads of pinned memory by a
// kernel, launches one by one and as a graph, and pinning. Tells each to
// `found` as it is there; what this machine refuses is left out, and told to
// `refused`. Errors: device_lost.
absl::Status MeasureCeilings(
    Stream& stream, Inputs& inputs, int64_t large_bytes,
    absl::FunctionRef<void(const Ceiling&)> found,
    absl::FunctionRef<void(const std::string& name, const absl::Status&)>
        refused);

}  // namespace tiercel

#endif  // TIERCEL_BENCH_KERNELS_CEILINGS_H_
