#include "kernels/device/cpu/probe.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <new>
#include <vector>

#include "kernels/device/cpu/probe_isas.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

constexpr int64_t kReadFloats = int64_t{64} << 20;
constexpr int64_t kReadGrain = int64_t{1} << 18;
constexpr int kReadTries = 6;
constexpr int64_t kComputeSteps = 400'000;  // about 2 ms
constexpr int kComputeTries = 12;

// The seconds of each of `tries` calls of `body`. It stops when go_on() is
// false.
template <typename Body>
std::vector<double> SecondsOf(Clock& clock, int tries,
                              absl::FunctionRef<bool()> go_on, Body body) {
  std::vector<double> seconds;
  for (int i = 0; i < tries && go_on(); ++i) {
    const Clock::Time start = clock.Now();
    body();
    seconds.push_back(SecondsBetween(start, clock.Now()));
  }
  return seconds;
}

double Least(const std::vector<double>& seconds) {
  return *std::min_element(seconds.begin(), seconds.end());
}

}  // namespace

double SpreadOf(const std::vector<double>& samples) {
  std::vector<double> sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  return (sorted[sorted.size() / 2] - sorted.front()) / sorted.front();
}

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
  const auto read = SecondsOf(clock, kReadTries, go_on, [&] {
    pool.ParallelFor(
        kReadFloats, kReadGrain, [&](int64_t begin, int64_t end, int) {
          const float sum =
              kProbeRead[stream.isa()](data.get() + begin, end - begin);
          if (sum != 0) sink = sum;
        });
  });
  const auto compute = [&](auto* body) {
    return SecondsOf(clock, kComputeTries, go_on, [&] {
      pool.ParallelFor(threads, 1, [&](int64_t, int64_t, int) {
        if (body(kComputeSteps) < 0) sink = 1;
      });
    });
  };
  const auto f32 = compute(kProbeFma[stream.isa()]);
  const auto int8 = compute(kProbeInt8[stream.isa()]);
  if (stopped) return CancelledError();
  const double steps =
      static_cast<double>(threads) * kComputeSteps * kProbeChains;
  return Peaks{.read_bytes_per_s = kReadFloats * sizeof(float) / Least(read),
               .f32_ops_per_s = steps * 16 * 2 / Least(f32),
               .int8_ops_per_s = steps * 64 * 2 / Least(int8),
               .read_spread = SpreadOf(read)};
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
