// Measures matrix products of one decoder layer, as shares of this machine's
// peaks:
//
//   matmul_bench --benchmark_filter='decode.*q4_1'
//
// decode: one row, matrices far larger than the caches; share of memory
// bandwidth. prompt: 512 rows; share of the int8 or f32 peak. Times are those
// of the best iteration, which other work on the machine distorts least.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/device/cpu/probe.h"
#include "kernels/layer/matmul.h"
#include "kernels/layer/packed_layout.h"
#include "kernels/number/half.h"

namespace tiercel {
namespace {

constexpr int64_t kColdBytes = 256 << 20;

PackedMatrix RandomMatrix(DType type, int64_t n, int64_t k) {
  std::mt19937 random(1);
  absl::StatusOr<PackedMatrix> matrix = PackedMatrix::Create(type, n, k);
  if (!matrix.ok()) std::exit(1);
  std::vector<std::byte> row(static_cast<size_t>(RowBytes(type, k)));
  // Every f16 is 0x2020, about 1/64, and every byte of codes is 0x20.
  std::fill(row.begin(), row.end(), std::byte{0x20});
  for (int64_t r = 0; r < n; ++r) matrix->PackRow(r, row.data());
  return *std::move(matrix);
}

struct Case {
  DType type;
  Compute compute;
  int64_t rows;
  int64_t n;
  int64_t k;
};

void Run(benchmark::State& state, Stream& stream, const Peaks& peaks,
         const Case& c) {
  std::vector<PackedMatrix> matrices;
  matrices.push_back(RandomMatrix(c.type, c.n, c.k));
  if (c.rows == 1) {
    while (static_cast<int64_t>(matrices.size()) * matrices[0].bytes() <
           kColdBytes) {
      matrices.push_back(RandomMatrix(c.type, c.n, c.k));
    }
  }
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<size_t>(c.rows * c.k));
  for (float& value : x) value = normal(random);
  std::vector<float> out(static_cast<size_t>(c.rows * c.n));
  MatmulParams p = {InPlace(x.data()), c.k, c.rows, c.compute, 1, {}};
  double best = 1e9;
  for (auto _ : state) {
    // One pass takes all matrices, so that each has left the cache since its
    // last use.
    const auto begin = std::chrono::steady_clock::now();
    for (const PackedMatrix& matrix : matrices) {
      p.outputs[0] = {&matrix, nullptr, InPlace(out.data()), c.n,
                      StoreMode::kAssign};
      if (!Matmul(stream, p).ok()) return state.SkipWithError("failed");
    }
    const std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count() / static_cast<double>(matrices.size()));
    state.SetIterationTime(took.count());
  }
  const double bytes = static_cast<double>(matrices[0].bytes());
  const double ops = 2.0 * static_cast<double>(c.rows * c.n * c.k);
  const bool q8 = c.compute == Compute::kQ8 && IsQuantised(c.type);
  const double peak = q8 ? peaks.int8_ops_per_s : peaks.f32_ops_per_s;
  state.counters["best_us"] = best * 1e6;
  state.counters["GB/s"] = bytes / best * 1e-9;
  state.counters["%bandwidth"] = 100 * bytes / best / peaks.read_bytes_per_s;
  state.counters["Gop/s"] = ops / best * 1e-9;
  state.counters["%ops"] = 100 * ops / best / peak;
}

void Register(Stream& stream, const Peaks& peaks) {
  const int64_t shapes[][2] = {
      {576, 576}, {1536, 576}, {576, 1536}, {49152, 576}};
  for (const Compute compute : {Compute::kQ8, Compute::kF32}) {
    for (const int64_t rows : {1, 7, 512}) {
      for (size_t t = 0; t < std::size(kDTypeInfos); ++t) {
        const DType type = static_cast<DType>(t);
        if (compute == Compute::kQ8 && !IsQuantised(type)) continue;
        for (const auto& shape : shapes) {
          const int64_t n = shape[0];
          // The nearest k that holds whole blocks.
          const int64_t block = InfoOf(type).block_elements;
          const int64_t k = (shape[1] + block - 1) / block * block;
          if (rows > 1 && n > 2000) continue;
          const Case c = {type, compute, rows, n, k};
          const std::string name =
              (rows == 1   ? "decode"
               : rows == 7 ? "verify"
                           : "prompt") +
              std::string(compute == Compute::kQ8 ? "/q8/" : "/f32/") +
              std::string(InfoOf(type).name) + "/" + std::to_string(n) + "x" +
              std::to_string(k);
          benchmark::RegisterBenchmark(
              name.c_str(),
              [&stream, &peaks, c](benchmark::State& state) {
                Run(state, stream, peaks, c);
              })
              ->UseManualTime()
              ->Unit(benchmark::kMicrosecond);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tiercel

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  // Without TIERCEL_THREADS there is a thread for each CPU that is allowed.
  const char* threads = std::getenv("TIERCEL_THREADS");
  tiercel::Stream::Options options;
  if (threads != nullptr) options.threads = std::atoi(threads);
  const auto stream = tiercel::Stream::Create(options);
  if (!stream.ok()) {
    std::cerr << stream.status() << "\n";
    return 1;
  }
  const auto peaks =
      tiercel::MeasurePeaks(**stream, [](uint64_t, uint64_t) { return true; });
  if (!peaks.ok()) {
    std::cerr << peaks.status() << "\n";
    return 1;
  }
  std::cout << (*stream)->pool().num_threads() << " threads, "
            << tiercel::NameOf((*stream)->isa()) << ": read "
            << peaks->read_bytes_per_s * 1e-9 << " GB/s, f32 "
            << peaks->f32_ops_per_s * 1e-9 << " Gop/s, int8 "
            << peaks->int8_ops_per_s * 1e-9 << " Gop/s\n";
  tiercel::Register(**stream, *peaks);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
