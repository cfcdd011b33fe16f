#include "bench/kernels/gpu_clock.h"
#include "kernels/system/clock.h"
#include "lib/status/status_macros.h"

namespace tiercel {

absl::StatusOr<Took> TimeOf(DeviceQueue& stream,
                            absl::FunctionRef<absl::Status()> queue) {
  const Clock::Time start = SteadyClock().Now();
  RETURN_IF_ERROR(queue());
  const double host_s = SecondsBetween(start, SteadyClock().Now());
  RETURN_IF_ERROR(stream.Synchronize());
  return Took{SecondsBetween(start, SteadyClock().Now()), host_s};
}

absl::StatusOr<std::optional<Took>> TimeOfGraph(DeviceQueue& /*stream*/,
                                                int /*launches*/,
                                                absl::FunctionRef<int()>) {
  return std::nullopt;
}

}  // namespace tiercel
