#include "bench/kernels/gpu_clock.h"
#include "kernels/machine/clock.h"

namespace tiercel {

absl::StatusOr<Took> TimeOf(CudaStream& stream,
                            absl::FunctionRef<absl::Status()> queue) {
  const Clock::Time start = SteadyClock().Now();
  if (absl::Status s = queue(); !s.ok()) return s;
  const double host_s = SecondsBetween(start, SteadyClock().Now());
  if (absl::Status s = stream.Synchronize(); !s.ok()) return s;
  return Took{SecondsBetween(start, SteadyClock().Now()), host_s};
}

absl::StatusOr<std::optional<Took>> TimeOfGraph(CudaStream& /*stream*/,
                                                int /*launches*/,
                                                absl::FunctionRef<int()>) {
  return std::nullopt;
}

}  // namespace tiercel
