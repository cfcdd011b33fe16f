#ifndef TIERCEL_BENCH_KERNELS_GPU_CLOCK_H_
#define TIERCEL_BENCH_KERNELS_GPU_CLOCK_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/machine/cuda_stream.h"

namespace tiercel {

// How long a GPU works at what a stream is given: by its own events; on a
// device that the CPU plays by the CPU's clock.
struct Took {
  double device_s;  // from the first to the last of it
  double host_s;    // that the calls took to queue it
};
absl::StatusOr<Took> TimeOf(CudaStream& stream,
                            absl::FunctionRef<absl::Status()> queue);

// Queues `launch` so many times, as one graph that was captured before; the
// median of a few replays. Absent where the device is played.
absl::StatusOr<std::optional<Took>> TimeOfGraph(
    CudaStream& stream, int launches, absl::FunctionRef<int()> launch);

}  // namespace tiercel

#endif  // TIERCEL_BENCH_KERNELS_GPU_CLOCK_H_
