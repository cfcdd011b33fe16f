#include "kernels/select/chunk_scores.h"
#include "kernels/simd/simd.h"

namespace tiercel::TIERCEL_ISA_NS {
namespace {

constexpr int kLanes = 16;

// Turns scores into weights. Returns their sum, or zero if a score is not
// finite.
float Softmax(float* score, int64_t chunks) {
  F32x16 largest = Set1(score[0]);
  F32x16 fault = Zero();  // zero, or NaN
  for (int64_t c = 0; c < chunks; c += kLanes) {
    const F32x16 x = Load(score + c);
    largest = Max(largest, x);
    fault = Fma(x, Zero(), fault);
  }
  if (!(ReduceAdd(fault) == 0.0f)) return 0.0f;

  const F32x16 max = Set1(ReduceMax(largest));
  const int64_t full = chunks / kLanes * kLanes;
  F32x16 total = Zero();
  for (int64_t c = 0; c < full; c += kLanes) {
    const F32x16 weight = Exp(Load(score + c) - max);
    Store(weight, score + c);
    total = total + weight;
  }
  if (full < chunks) {
    const int rest = static_cast<int>(chunks - full);
    Store(Exp(Load(score + full) - max), score + full);
    total = total + LoadN(score + full, rest);
  }
  return ReduceAdd(total);
}

void AddQuotients(const float* weight, float sum, int64_t chunks, float* out) {
  const F32x16 divisor = Set1(sum);
  int64_t c = 0;
  for (; c + kLanes <= chunks; c += kLanes) {
    Store(Load(out + c) + Load(weight + c) / divisor, out + c);
  }
  const int rest = static_cast<int>(chunks - c);
  StoreN(LoadN(out + c, rest) + LoadN(weight + c, rest) / divisor, out + c,
         rest);
}

}  // namespace

void ComputeChunkWeights(const ChunkWeights& p) {
  memset(p.out, 0, sizeof(float) * static_cast<size_t>(p.chunks));
  for (int h = 0; h < p.group; ++h) {
    float* const score = p.score + h * p.stride;
    const float sum = Softmax(score, p.chunks);
    if (sum > 0.0f) AddQuotients(score, sum, p.chunks, p.out);
  }
}

}  // namespace tiercel::TIERCEL_ISA_NS
