#ifndef TIERCEL_KERNELS_ATTENTION_CHUNK_SCORES_BODY_H_
#define TIERCEL_KERNELS_ATTENTION_CHUNK_SCORES_BODY_H_

#include <cstdint>

namespace tiercel {

struct ChunkScoresParams;
void ChunkScoresReference(const ChunkScoresParams& p);

// The scores of all chunks of one KV head to the sum of its heads' softmax.
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

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_ATTENTION_CHUNK_SCORES_BODY_H_
