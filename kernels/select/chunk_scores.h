#ifndef TIERCEL_KERNELS_SELECT_CHUNK_SCORES_H_
#define TIERCEL_KERNELS_SELECT_CHUNK_SCORES_H_

#include <cstdint>

#include "kernels/device/device_ptr.h"
#include "kernels/device/kernel_entry.h"
#include "kernels/select/mean_scores.h"
#include "lib/status/status_forward.h"

struct CUstream_st;

namespace tiercel {

class Stream;

// The importance of each chunk to one row: attention over digests
// (kernels/kv/chunk_means.h), summed over the query heads h that share KV head
// g, h / (heads / kv_heads) = g (TriForce, arXiv 2404.11912, section 4.1).
//
//   score[h, c] = scale * dot(q[h], means[g, c])   as MeanScores
//   w[h, c] = e^(score[h, c] - max_c score[h, c])
//   out[g, c] = sum_h w[h, c] / sum_c w[h, c]      in ascending h
//
// in float. sum_c is made by 16 chains over c % 16, then a fixed tree. A weight
// below e^-87 counts as e^-87. A head with a score that is not finite
// contributes nothing, so that `out` is always finite and can be sorted; the
// fault shows in attention's result.
//
// Scratch: a float per query head and chunk. Errors: invalid_sizes,
// out_of_memory.
struct ChunkScoresParams {
  DevicePtr<const float> q;  // [heads, head_dim], rotated
  int heads;                 // a multiple of kv_heads
  int kv_heads;
  int head_dim;  // a multiple of 8
  float scale;   // scale of the scores, usually 1 / sqrt(head_dim)
  // f16 [kv_heads, means_stride]; those of a KV head are [num_chunks, head_dim]
  DevicePtr<const uint16_t> means;
  int64_t means_stride;  // elements from one KV head to the next
  int64_t num_chunks;    // 0 is allowed; at most 2^28
  DevicePtr<float> out;  // [kv_heads, num_chunks]; must not overlap the inputs
};
absl::Status ChunkScores(Stream& stream, const ChunkScoresParams& p);

// ---- Its bodies ----

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
TIERCEL_KERNEL(ChunkWeightsCuda, CUstream_st* stream, const ChunkWeights& w,
               int kv_heads);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SELECT_CHUNK_SCORES_H_
