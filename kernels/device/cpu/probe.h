#ifndef TIERCEL_KERNELS_DEVICE_CPU_PROBE_H_
#define TIERCEL_KERNELS_DEVICE_CPU_PROBE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/device/stream.h"
#include "kernels/system/clock.h"

namespace tiercel {

// The difference between the median of positive `samples` (the greater one of
// two) and the least, as a share of the least. Other work on the machine delays
// some samples and spares others: if the spread is above kMostSpread, the
// machine was busy with other work.
double SpreadOf(const std::vector<double>& samples);
inline constexpr double kMostSpread = 0.25;

// The peak speeds of this machine with the stream's threads and instruction
// set. Measured speeds are given as shares of these.
struct Peaks {
  double read_bytes_per_s;  // summing 256 MiB, far more than caches hold
  double f32_ops_per_s;     // float multiply-adds in registers, 2 ops each
  double int8_ops_per_s;    // int8 dot products in registers, 2 ops each
  double read_spread;       // SpreadOf the seconds that summing took
};

// Takes the best of several short tries, about half a second in all: on a busy
// machine the best is the least wrong. Calls progress(done, total) with numbers
// of tries; false cancels. Errors: out_of_memory; cancelled.
absl::StatusOr<Peaks> MeasurePeaks(
    Stream& stream,
    absl::FunctionRef<bool(uint64_t done, uint64_t total)> progress,
    Clock& clock = SteadyClock());

// The system's name of the processor, or "unknown CPU".
std::string CpuName();

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_CPU_PROBE_H_
