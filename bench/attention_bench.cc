// Measures attention of one decoder layer, as shares of this machine's peaks:
//
//   attention_bench --benchmark_filter='decode.*f16'
//
// decode: 1 to 8 rows over as many layers as exceed the caches; KV bytes read
// as a share of memory bandwidth. prompt: 512 rows; 4 * head_dim operations per
// row, head and position seen, as a share of the f32 peak. Times are those of
// the best iteration, which other work on the machine distorts least.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/attention/attention.h"
#include "kernels/device/cpu/probe.h"
#include "kernels/kv/kv_write.h"

namespace tiercel {
namespace {

constexpr int64_t kColdBytes = 256 << 20;

struct Case {
  int heads;
  int kv_heads;
  int head_dim;
  DType type;
  int64_t depth;
  int64_t rows;
};

std::vector<float> RandomFloats(int64_t n) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = normal(random);
  return values;
}

// The KV of one layer, written through KvWrite.
struct Layer {
  std::vector<std::byte> bytes;
  std::vector<DevicePtr<std::byte>> pages;
};

Layer MakeLayer(Stream& stream, const KvLayout& layout, int64_t positions,
                const std::vector<float>& row) {
  Layer layer;
  const int64_t pages = (positions + kPageTokens - 1) / kPageTokens;
  layer.bytes.resize(static_cast<size_t>(pages * layout.PageBytes()));
  for (int64_t page = 0; page < pages; ++page) {
    layer.pages.push_back(InPlace(layer.bytes.data()) +
                          page * layout.PageBytes());
  }
  // Rows overlap, so that they differ without as many floats as the KV has.
  const int64_t row_floats = int64_t{layout.kv_heads} * layout.head_dim;
  for (int64_t t = 0; t < positions; ++t) {
    const KvWriteParams p = {InPlace(row.data()) + t % 1024,
                             InPlace(row.data()) + t % 1021,
                             row_floats,
                             row_floats,
                             1,
                             layout,
                             layer.pages.data(),
                             0,
                             pages,
                             t};
    if (!KvWrite(stream, p).ok()) std::exit(1);
  }
  return layer;
}

void Run(benchmark::State& state, Stream& stream, const Peaks& peaks,
         const Case& c) {
  const KvLayout layout = {c.type, c.type, c.kv_heads, c.head_dim};
  const int64_t positions = c.depth + c.rows;
  const int64_t row_floats = int64_t{c.kv_heads} * c.head_dim;
  const std::vector<float> kv = RandomFloats(row_floats + 1024);
  const int64_t layer_bytes =
      positions * c.kv_heads * (layout.KRowBytes() + layout.VRowBytes());
  std::vector<Layer> layers;
  do {
    layers.push_back(MakeLayer(stream, layout, positions, kv));
  } while (c.rows <= 8 &&
           static_cast<int64_t>(layers.size()) * layer_bytes < kColdBytes);

  const int64_t width = int64_t{c.heads} * c.head_dim;
  const std::vector<float> q = RandomFloats(c.rows * width);
  std::vector<float> out(q.size());
  double best = 1e9;
  size_t next = 0;
  for (auto _ : state) {
    const Layer& layer = layers[next++ % layers.size()];
    const auto start = std::chrono::steady_clock::now();
    const absl::Status status =
        Attention(stream, {InPlace(q.data()), width, c.rows, c.heads,
                           1.0f / std::sqrt(static_cast<float>(c.head_dim)),
                           layout, layer.pages.data(), 0,
                           static_cast<int64_t>(layer.pages.size()), 0, c.depth,
                           /*view=*/nullptr, InPlace(out.data())});
    if (!status.ok()) state.SkipWithError(status.ToString().c_str());
    const std::chrono::duration<double> taken =
        std::chrono::steady_clock::now() - start;
    best = std::min(best, taken.count());
  }
  const double seen =
      static_cast<double>(c.rows) *
      (static_cast<double>(c.depth) + static_cast<double>(c.rows + 1) / 2);
  const double operations = 4.0 * c.head_dim * c.heads * seen;
  const double bytes = static_cast<double>(layer_bytes);
  state.counters["best_us"] = best * 1e6;
  state.counters["GB/s"] = bytes / best * 1e-9;
  state.counters["of_read_peak"] = bytes / best / peaks.read_bytes_per_s;
  state.counters["of_f32_peak"] = operations / best / peaks.f32_ops_per_s;
}

struct Model {
  const char* name;
  int heads;
  int kv_heads;
  int head_dim;
};
constexpr Model kModels[] = {
    {"smollm2-135m", 9, 3, 64},
    {"llama-7b", 32, 32, 128},
    {"llama3-8b", 32, 8, 128},
};

int Main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const char* threads = std::getenv("TIERCEL_THREADS");
  absl::StatusOr<std::unique_ptr<Stream>> stream = Stream::Create(
      {DeviceKind::kCpu, threads == nullptr ? 0 : std::atoi(threads)});
  if (!stream.ok()) {
    std::cerr << stream.status() << "\n";
    return 1;
  }
  const absl::StatusOr<Peaks> peaks =
      MeasurePeaks(**stream, [](uint64_t, uint64_t) { return true; });
  if (!peaks.ok()) {
    std::cerr << peaks.status() << "\n";
    return 1;
  }
  std::cout << "ISA " << NameOf((*stream)->isa()) << ", "
            << (*stream)->pool().num_threads() << " threads, read peak "
            << peaks->read_bytes_per_s * 1e-9 << " GB/s, f32 peak "
            << peaks->f32_ops_per_s * 1e-9 << " Gop/s\n";
  for (const Model& model : kModels) {
    for (DType type : {DType::kF16, DType::kQ8_0, DType::kF32, DType::kBF16}) {
      for (int64_t rows : {1, 2, 8, 512}) {
        for (int64_t depth : {0, 7500}) {
          if (depth == 0 && rows < 512) continue;
          const Case c = {model.heads, model.kv_heads, model.head_dim,
                          type,        depth,          rows};
          const std::string name =
              std::string(rows < 512 ? "decode" : "prompt") + "/" + model.name +
              "/" + std::string(InfoOf(type).name) + "/rows" +
              std::to_string(rows) + "/depth" + std::to_string(depth);
          benchmark::RegisterBenchmark(
              name.c_str(),
              [&stream, &peaks, c](benchmark::State& state) {
                Run(state, **stream, *peaks, c);
              })
              ->Unit(benchmark::kMicrosecond)
              ->UseRealTime();
        }
      }
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace tiercel

int main(int argc, char** argv) { return tiercel::Main(argc, argv); }
