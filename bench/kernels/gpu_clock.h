#ifndef TIERCEL_BENCH_KERNELS_GPU_CLOCK_H_
#define TIERCEL_BENCH_KERNELS_GPU_CLOCK_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/device/cuda/cuda_driver.h"

namespace tiercel {

// The time that a GPU takes for the work queued on a stream, by its own events;
// for a device that the CPU simulates by the CPU's clock.
struct Took {
  double device_s;  // seconds from the beginning of the work to its end
  double host_s;    // seconds of the calls that queue it
};
absl::StatusOr<Took> TimeOf(DeviceQueue& stream,
                            absl::FunctionRef<absl::Status()> queue);

// Queues `launch` this many times, as one graph that was captured before.
// Returns the median of a few replays; absent if the device is simulated.
absl::StatusOr<std::optional<Took>> TimeOfGraph(
    DeviceQueue& stream, int launches, absl::FunctionRef<int()> launch);

}  // namespace tiercel

#endif  // TIERCEL_BENCH_KERNELS_GPU_CLOCK_H_
