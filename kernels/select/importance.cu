// Bytes: the scores of a row three times, and the importance read and written.
// Operations: two exponentials, some 40 f32, a score, twice.
// Bound by: memory.

#include <cmath>
#include <limits>

#include "kernels/device/block_sums.h"
#include "kernels/device/device_lang.h"
#include "kernels/number/reference_math.h"
#include "kernels/select/importance.h"

namespace tiercel {
namespace {

TIERCEL_DEVICE float RootWeight(float score, float max) {
  return ExpLane((score - max) * 0.5f) - ExpLane(-87.0f);
}

// A block computes the maximum and the length of the weights of one query, i.e.
// one row and head.
struct WeighQueries {
  static constexpr int kMaxThreads = 256;
  struct Shared {
    BlockSums sums;
  };
  ImportanceParams p;
  RootWeights* weights;  // [rows, heads]

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& shared) const {
    for (int64_t i = t.block; i < p.rows * p.heads; i += t.blocks) {
      const RootWeights found =
          Exponentiate(t, shared, p.scores.raw() + i * p.scores_stride);
      if (t.index == 0) weights[i] = found;
    }
  }

  TIERCEL_DEVICE RootWeights Exponentiate(const Thread& t, Shared& shared,
                                          const float* scores) const {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    float max = std::numeric_limits<float>::lowest();
    for (int64_t j = t.index; j < p.candidates; j += t.count) {
      max = MaxOrNan(max, scores[j] == kInf
                              ? std::numeric_limits<float>::quiet_NaN()
                              : scores[j]);
    }
    max = MaxOfBlock(t, max, shared.sums.of_warps);
    if (std::isnan(max)) return {max, 0.0f};  // all threads know
    const float squares = SumInChains(
        t, p.candidates, shared.sums,
        [&](int64_t j) { return RootWeight(scores[j], max); },
        [](float sum, float weight) { return std::fma(weight, weight, sum); });
    return {max, std::sqrt(squares)};
  }
};

// A thread adds to the importance of one candidate for one KV head, query by
// query.
struct AddQueries {
  static constexpr int kMaxThreads = 256;
  struct Shared {};
  ImportanceParams p;
  const RootWeights* weights;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared&) const {
    const int group = p.heads / p.kv_heads;
    for (int64_t i = t.block * t.count + t.index; i < p.kv_heads * p.candidates;
         i += t.blocks * t.count) {
      const int64_t kv_head = i / p.candidates;
      const int64_t j = i % p.candidates;
      const int64_t at = kv_head * p.importance_stride + j;
      float sum = p.before.raw()[at] * p.decay;
      for (int64_t row = 0; row < p.rows; ++row) {
        for (int g = 0; g < group; ++g) {
          const int64_t query = row * p.heads + kv_head * group + g;
          const RootWeights w = weights[query];
          if (w.length == 0.0f) continue;
          sum +=
              RootWeight(p.scores.raw()[query * p.scores_stride + j], w.max) /
              w.length;
        }
      }
      p.importance.raw()[at] = sum;
    }
  }
};

}  // namespace

TIERCEL_KERNEL_BODY(AddImportanceCuda, CUstream_st* stream,
                    const ImportanceParams& p, DevicePtr<RootWeights> weights) {
  constexpr int kThreads = WeighQueries::kMaxThreads;
  if (p.rows > 0) {
    const int error = Launch(stream, TurnsFor(p.rows * p.heads, 1, kThreads),
                             WeighQueries{p, weights.raw()});
    if (error != 0) return error;
  }
  return Launch(stream, TurnsFor(p.kv_heads * p.candidates, kThreads, kThreads),
                AddQueries{p, weights.raw()});
}

}  // namespace tiercel
