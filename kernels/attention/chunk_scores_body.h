#ifndef TIERCEL_KERNELS_ATTENTION_CHUNK_SCORES_BODY_H_
#define TIERCEL_KERNELS_ATTENTION_CHUNK_SCORES_BODY_H_

#include <cstdint>

namespace tiercel {

struct ChunkScoresParams;
void ChunkScoresReference(const ChunkScoresParams& p);

// Scores of consecutive chunks of one KV head, for all of its query heads.
struct ChunkDots {
  const float* q;  // [group, head_dim]
  int group;       // query heads of this KV head
  int head_dim;
  float scale;
  const uint16_t* means;  // f16 [chunks, head_dim]
  int64_t chunks;         // at least 1
  // [group, stride], stride a multiple of 16. The last score is repeated up to
  // the next multiple of 16 chunks.
  float* score;
  int64_t stride;
};
using ChunkDotsFn = void(const ChunkDots& d);

// The scores of all chunks of one KV head to the sum of its heads' softmax.
struct ChunkWeights {
  float* score;  // [group, stride] as ChunkDots leaves it; becomes weights
  int64_t stride;
  int group;
  int64_t chunks;  // at least 1
  float* out;      // [chunks]
};
using ChunkWeightsFn = void(const ChunkWeights& w);

namespace portable {
ChunkDotsFn ComputeChunkDots;
ChunkWeightsFn ComputeChunkWeights;
}  // namespace portable
namespace avx2 {
ChunkDotsFn ComputeChunkDots;
ChunkWeightsFn ComputeChunkWeights;
}  // namespace avx2
namespace avx512 {
ChunkDotsFn ComputeChunkDots;
ChunkWeightsFn ComputeChunkWeights;
}  // namespace avx512
namespace avx512vnni {
ChunkDotsFn ComputeChunkDots;
ChunkWeightsFn ComputeChunkWeights;
}  // namespace avx512vnni

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_ATTENTION_CHUNK_SCORES_BODY_H_
