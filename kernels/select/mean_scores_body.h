#ifndef TIERCEL_KERNELS_SELECT_MEAN_SCORES_BODY_H_
#define TIERCEL_KERNELS_SELECT_MEAN_SCORES_BODY_H_

#include <cstdint>

#include "kernels/device/kernel_entry.h"

struct CUstream_st;

namespace tiercel {

struct MeanScoresParams;
void MeanScoresReference(const MeanScoresParams& p);

// The scores of consecutive chunks of one KV head, for all of its query heads.
struct MeanDots {
  const float* q;  // [group, head_dim]
  int group;       // query heads of this KV head
  int head_dim;
  float scale;
  const uint16_t* means;  // f16 [chunks, head_dim]
  int64_t chunks;         // at least 1
  // [group, stride]; stride is a multiple of 16. The last score is repeated up
  // to the next multiple of 16 chunks.
  float* score;
  int64_t stride;
};
using MeanDotsFn = void(const MeanDots& d);

namespace portable {
MeanDotsFn ComputeMeanDots;
}
namespace avx2 {
MeanDotsFn ComputeMeanDots;
}
namespace avx512 {
MeanDotsFn ComputeMeanDots;
}

// Queues the work on a GPU's stream, with the reference's bits. Returns a
// cudaError_t.
TIERCEL_KERNEL int MeanScoresCuda(CUstream_st* stream,
                                  const MeanScoresParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SELECT_MEAN_SCORES_BODY_H_
