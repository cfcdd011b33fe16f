// Bytes: the scores three times, from the second-level cache.
// Operations: an exponential, some 20 f32, a score.
// Bound by: the launch, up to some 100,000 scores a head.

#include <cmath>

#include "kernels/device/block_sums.h"
#include "kernels/device/device_lang.h"
#include "kernels/select/chunk_scores.h"
#include "kernels/select/exponentiate_scores.h"

namespace tiercel {
namespace {

// A block sums the softmax of the query heads of one KV head, one after the
// other. It reads the scores, which become weights, three times from the
// second-level cache.
struct SumSoftmax {
  static constexpr int kMaxThreads = 256;
  struct Shared {
    BlockSums sums;
  };
  ChunkWeights w;  // the first KV head's

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& shared) const {
    float* const out = w.out + t.block * w.chunks;
    for (int64_t c = t.index; c < w.chunks; c += t.count) out[c] = 0.0f;
    for (int h = 0; h < w.group; ++h) {
      AddHead(t, shared, w.score + (t.block * w.group + h) * w.stride, out);
    }
  }

  TIERCEL_DEVICE void AddHead(const Thread& t, Shared& shared, float* score,
                              float* out) const {
    const float sum = ExponentiateScores(t, score, w.chunks, shared.sums);
    if (std::isnan(sum)) return;  // all threads know
    for (int64_t c = t.index; c < w.chunks; c += t.count) {
      out[c] += score[c] / sum;
    }
  }
};

}  // namespace

TIERCEL_KERNEL_BODY(ChunkWeightsCuda, CUstream_st* stream,
                    const ChunkWeights& w, int kv_heads) {
  return Launch(stream,
                {.blocks = kv_heads, .threads = SumSoftmax::kMaxThreads},
                SumSoftmax{w});
}

}  // namespace tiercel
