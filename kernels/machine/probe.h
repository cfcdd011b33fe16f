#ifndef TIERCEL_KERNELS_MACHINE_PROBE_H_
#define TIERCEL_KERNELS_MACHINE_PROBE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/machine/clock.h"
#include "kernels/machine/stream.h"

namespace tiercel {

// How much longer the middle one of positive `samples` (of an even number the
// greater) is than the least, as a share of that. Other work on the machine
// delays some and spares others: beyond kMostSpread it did something else.
double SpreadOf(const std::vector<double>& samples);
inline constexpr double kMostSpread = 0.25;

// What this machine can do with the stream's threads and instruction set:
// the peaks that every speed is a share of.
struct Peaks {
  double read_bytes_per_s;  // summing 256 MiB, far more than caches hold
  double f32_ops_per_s;     // float multiply-adds in registers, 2 ops each
  double int8_ops_per_s;    // int8 dot products in registers, 2 ops each
  double read_spread;       // of the seconds that summing took
};

// Takes the best of several short tries, about half a second in all: on a busy
// machine the best is the least wrong. `progress(done, total)` in tries; false
// cancels. Errors: out_of_memory; cancelled.
absl::StatusOr<Peaks> MeasurePeaks(
    Stream& stream,
    absl::FunctionRef<bool(uint64_t done, uint64_t total)> progress,
    Clock& clock = SteadyClock());

// As the system names the processor; "unknown CPU" where it does not.
std::string CpuName();

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_MACHINE_PROBE_H_
