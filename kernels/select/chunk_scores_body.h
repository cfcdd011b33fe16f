#ifndef TIERCEL_KERNELS_SELECT_CHUNK_SCORES_BODY_H_
#define TIERCEL_KERNELS_SELECT_CHUNK_SCORES_BODY_H_

#include <cstdint>

#include "kernels/device/kernel_entry.h"
#include "kernels/select/chunk_scores.h"
#include "kernels/select/mean_scores.h"

struct CUstream_st;

namespace tiercel {

void ChunkScoresReference(const ChunkScoresParams& p);

// The scores that are summed: [heads, out_stride].
inline MeanScoresParams ScoresOf(const ChunkScoresParams& p) {
  return {.q = p.q,
          .heads = p.heads,
          .kv_heads = p.kv_heads,
          .head_dim = p.head_dim,
          .scale = p.scale,
          .means = p.means,
          .means_stride = p.means_stride,
          .num_chunks = p.num_chunks,
          .out = nullptr,
          .out_stride = (p.num_chunks + 15) / 16 * 16};
}

// Turns the scores of all chunks of one KV head into the sum of its heads'
// softmax.
struct ChunkWeights {
  float* score;  // [group, stride] as MeanScores leaves it; becomes weights
  int64_t stride;
  int group;
  int64_t chunks;  // at least 1
  float* out;      // [chunks]
};
using ChunkWeightsFn = void(const ChunkWeights& w);

namespace portable {
ChunkWeightsFn ComputeChunkWeights;
}
namespace avx2 {
ChunkWeightsFn ComputeChunkWeights;
}
namespace avx512 {
ChunkWeightsFn ComputeChunkWeights;
}

// Queues the work for all KV heads on a GPU's stream, with the reference's
// bits; `w` is that of the first. Returns a cudaError_t.
TIERCEL_KERNEL int ChunkWeightsCuda(CUstream_st* stream, const ChunkWeights& w,
                                    int kv_heads);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SELECT_CHUNK_SCORES_BODY_H_
