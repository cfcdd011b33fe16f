#include "kernels/machine/probe.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <new>

#include "kernels/base/error.h"
#include "kernels/machine/probe_isas.h"

namespace tiercel {
namespace {

constexpr int64_t kReadFloats = int64_t{64} << 20;
constexpr int64_t kReadGrain = int64_t{1} << 18;
constexpr int kReadTries = 6;
constexpr int64_t kComputeSteps = 400'000;  // about 2 ms
constexpr int kComputeTries = 12;

// The best of several calls of `body`, in seconds, as long as `go_on()`.
template <typename Body>
double BestSeconds(Clock& clock, int tries, absl::FunctionRef<bool()> go_on,
                   Body body) {
  double best = 1e9;
  for (int i = 0; i < tries && go_on(); ++i) {
    const Clock::Time start = clock.Now();
    body();
    best = std::min(best, SecondsBetween(start, clock.Now()));
  }
  return best;
}

}  // namespace

absl::StatusOr<Peaks> MeasurePeaks(
    Stream& stream,
    absl::FunctionRef<bool(uint64_t done, uint64_t total)> progress,
    Clock& clock) {
  const std::unique_ptr<float[]> data(new (std::nothrow) float[kReadFloats]());
  if (data == nullptr) {
    return MemoryError("out_of_memory",
                       "measuring the machine: need 256 MiB of memory");
  }
  ThreadPool& pool = stream.pool();
  const int threads = pool.num_threads();
  uint64_t done = 0;
  bool stopped = false;
  const auto go_on = [&] {
    stopped = stopped || !progress(done++, kReadTries + 2 * kComputeTries);
    return !stopped;
  };
  volatile float sink = 0;
  const double read = BestSeconds(clock, kReadTries, go_on, [&] {
    pool.ParallelFor(
        kReadFloats, kReadGrain, [&](int64_t begin, int64_t end, int) {
          const float sum =
              kProbeRead[stream.isa()](data.get() + begin, end - begin);
          if (sum != 0) sink = sum;
        });
  });
  const auto compute = [&](auto* body) {
    return BestSeconds(clock, kComputeTries, go_on, [&] {
      pool.ParallelFor(threads, 1, [&](int64_t, int64_t, int) {
        if (body(kComputeSteps) < 0) sink = 1;
      });
    });
  };
  const double steps =
      static_cast<double>(threads) * kComputeSteps * kProbeChains;
  const Peaks peaks = {
      .read_bytes_per_s = kReadFloats * sizeof(float) / read,
      .f32_ops_per_s = steps * 16 * 2 / compute(kProbeFma[stream.isa()]),
      .int8_ops_per_s = steps * 64 * 2 / compute(kProbeInt8[stream.isa()]),
  };
  return stopped ? absl::StatusOr<Peaks>(CancelledError()) : peaks;
}

std::string CpuName() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown CPU";
}

}  // namespace tiercel
