// Measures sampling, from logits to a token, for a vocabulary of 49,152 and
// logits that spread as widely as a language model's:
//
//   distribution_bench --benchmark_filter='distribution|draw'
#include <memory>
#include <random>
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/token/distribution.h"

namespace tiercel {
namespace {

constexpr int64_t kVocab = 49152;

std::vector<float> Logits(int64_t rows) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(static_cast<size_t>(rows * kVocab));
  for (float& logit : logits) logit = normal(random);
  for (size_t row = 0; row < logits.size(); row += kVocab) logits[row] = 20;
  return logits;
}

auto DistributionsOf(Stream& stream, const std::vector<float>& logits,
                     int64_t rows, const DistributionParams& params) {
  return MakeDistributions(stream, {.logits = logits.data(),
                                    .rows = rows,
                                    .vocab = kVocab,
                                    .tokens = nullptr,
                                    .before = 0,
                                    .distribution = params});
}

void RunDistributions(benchmark::State& state, int64_t rows,
                      const DistributionParams& params) {
  const auto stream = Stream::Create({});
  const std::vector<float> logits = Logits(rows);
  for (auto _ : state) {
    benchmark::DoNotOptimize(DistributionsOf(**stream, logits, rows, params));
  }
}

void RunDraw(benchmark::State& state, const DistributionParams& params) {
  const auto stream = Stream::Create({});
  const auto distributions = DistributionsOf(**stream, Logits(1), 1, params);
  int64_t position = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(Draw(distributions->front(), 1, position++));
}

const DistributionParams kUncut = {.temperature = 0.6f};
BENCHMARK_CAPTURE(RunDistributions, distribution_greedy, 1,
                  DistributionParams{.temperature = 0});
BENCHMARK_CAPTURE(RunDistributions, distribution, 1, kUncut);
BENCHMARK_CAPTURE(RunDistributions, distributions_17, 17, kUncut);
BENCHMARK_CAPTURE(RunDistributions, distribution_top_p, 1,
                  DistributionParams{.temperature = 0.6f, .top_p = 0.95f});
BENCHMARK_CAPTURE(RunDistributions, distribution_top_k, 1,
                  DistributionParams{.temperature = 0.6f, .top_k = 40});
BENCHMARK_CAPTURE(RunDistributions, distribution_min_p, 1,
                  DistributionParams{.temperature = 0.6f, .min_p = 0.05f});
BENCHMARK_CAPTURE(RunDraw, draw, kUncut);

}  // namespace
}  // namespace tiercel

int main(int argc, char** argv) {
  // This makes the heap like that of a process that has loaded a model: after a
  // large block was freed it keeps the memory of freed distributions, so that
  // the system need not map their pages again.
  benchmark::DoNotOptimize(std::vector<char>(16 << 20));
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
