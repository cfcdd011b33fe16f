// Measures a choice of single positions in one layer: the scores of a row with
// all keys, the importance by them, and the choice, for 32K positions in 8 KV
// heads of 128 elements with two query heads each:
//
//   selector_bench --benchmark_filter='scores|norms|importance|select'
#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/device/stream.h"
#include "kernels/kv/key_norms.h"
#include "kernels/number/half.h"
#include "kernels/select/importance.h"
#include "kernels/select/key_scores.h"
#include "kernels/select/selector.h"

namespace tiercel {
namespace {

constexpr int64_t kPositions = 32768;
constexpr int kHeads = 16;
constexpr int kKvHeads = 8;
constexpr int kHeadDim = 128;

// Pages with random keys; V is zero.
struct Keys {
  explicit Keys(DType type) : layout{type, type, kKvHeads, kHeadDim} {
    std::mt19937 random(1);
    const int64_t count = kPositions / kPageTokens;
    const auto page_bytes = static_cast<size_t>(layout.PageBytes());
    bytes.resize(static_cast<size_t>(count) * page_bytes);
    std::uniform_int_distribution<int> codes(0, 255);
    for (int64_t page = 0; page < count; ++page) {
      std::byte* const start = bytes.data() + page * layout.PageBytes();
      for (int64_t i = 0; i < layout.VOffset(0, 0); ++i) {
        // The mask keeps exponents small for every type.
        start[i] = static_cast<std::byte>(codes(random) & 0x37);
      }
      pages.push_back(InPlace(start));
    }
  }

  KvLayout layout;
  std::vector<std::byte> bytes;
  std::vector<DevicePtr<std::byte>> pages;
};

std::vector<float> Normal(int64_t n) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<size_t>(n));
  for (float& y : x) y = normal(random);
  return x;
}

// Measures GB/s of keys, which is all that one row reads.
void RunScores(benchmark::State& state, DType type, int64_t rows) {
  const auto stream = Stream::Create({});
  const Keys keys(type);
  const std::vector<float> q = Normal(rows * kHeads * kHeadDim);
  std::vector<float> out(static_cast<size_t>(rows * kHeads * kPositions));
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        KeyScores(**stream, {.q = InPlace(q.data()),
                             .q_stride = kHeads * kHeadDim,
                             .rows = rows,
                             .heads = kHeads,
                             .scale = 0.09f,
                             .layout = keys.layout,
                             .pages = keys.pages.data(),
                             .first_page = 0,
                             .num_pages = kPositions / kPageTokens,
                             .position = kPositions - rows,
                             .first = 0,
                             .last = kPositions,
                             .out = InPlace(out.data()),
                             .out_stride = kPositions}));
  }
  state.SetBytesProcessed(state.iterations() * kPositions * kKvHeads *
                          keys.layout.KRowBytes());
}

void RunNorms(benchmark::State& state, DType type) {
  const auto stream = Stream::Create({});
  const Keys keys(type);
  std::vector<uint16_t> out(static_cast<size_t>(kKvHeads * kPositions));
  for (auto _ : state) {
    benchmark::DoNotOptimize(KeyNorms(
        **stream, {keys.layout, keys.pages.data(), 0, kPositions / kPageTokens,
                   0, kPositions, InPlace(out.data()), kPositions}));
  }
  state.SetBytesProcessed(state.iterations() * kPositions * kKvHeads *
                          keys.layout.KRowBytes());
}

void RunImportance(benchmark::State& state, int64_t rows) {
  const auto stream = Stream::Create({});
  const std::vector<float> scores = Normal(rows * kHeads * kPositions);
  std::vector<float> importance(static_cast<size_t>(kKvHeads * kPositions));
  for (auto _ : state) {
    benchmark::DoNotOptimize(AddImportance(
        **stream,
        {InPlace(scores.data()), kPositions, rows, kHeads, kKvHeads, kPositions,
         /*decay=*/1.0f, InPlace(importance.data()), InPlace(importance.data()),
         kPositions}));
  }
}

void RunSelect(benchmark::State& state, int64_t budget) {
  const auto stream = Stream::Create({});
  std::vector<float> importance = Normal(kKvHeads * kPositions);
  for (float& x : importance) x = x * x;
  std::vector<uint16_t> norms(importance.size());
  std::transform(importance.begin(), importance.end(), norms.begin(),
                 [](float x) { return F16FromF32(5 + x); });
  std::vector<int32_t> out(static_cast<size_t>(kKvHeads * budget));
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        Select(**stream, {.importance = InPlace(importance.data()),
                          .importance_stride = kPositions,
                          .norms = InPlace(norms.data()),
                          .norms_stride = kPositions,
                          .kv_heads = kKvHeads,
                          .candidates = kPositions,
                          .budget = budget,
                          .most_prior = 0.25f,
                          .reach = 16,
                          .suppression = 1.0f,
                          .exclusivity = 0.85f,
                          .out = InPlace(out.data())}));
  }
}

// Real time counts, so that the rate is that of all threads together.
BENCHMARK_CAPTURE(RunScores, scores_f16, DType::kF16, 1)->UseRealTime();
BENCHMARK_CAPTURE(RunScores, scores_q8_0, DType::kQ8_0, 1)->UseRealTime();
BENCHMARK_CAPTURE(RunScores, scores_f16_16, DType::kF16, 16)->UseRealTime();
BENCHMARK_CAPTURE(RunNorms, norms_f16, DType::kF16)->UseRealTime();
BENCHMARK_CAPTURE(RunImportance, importance, 1)->UseRealTime();
BENCHMARK_CAPTURE(RunSelect, select, 2048)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tiercel

BENCHMARK_MAIN();
