#ifndef TIERCEL_KERNELS_SELECT_MEAN_SCORES_H_
#define TIERCEL_KERNELS_SELECT_MEAN_SCORES_H_

#include <cstdint>
#include <string_view>

#include "kernels/device/device_ptr.h"
#include "kernels/device/kernel_entry.h"
#include "lib/status/status_forward.h"

struct CUstream_st;

namespace tiercel {

class Stream;

// The scores of one row with digests (kernels/kv/chunk_means.h), which are
// treated as keys, for query head h and its KV head g = h / (heads / kv_heads):
//
//   out[h, c] = scale * dot(q[h], means[g, c])   a chain of fma over head_dim
//
// in float. A query or a digest that is not finite makes its scores not finite.
// Errors: invalid_sizes.
struct MeanScoresParams {
  DevicePtr<const float> q;  // [heads, head_dim], rotated
  int heads;                 // a multiple of kv_heads
  int kv_heads;
  int head_dim;  // a multiple of 8
  float scale;   // scale of the scores, usually 1 / sqrt(head_dim)
  // f16 [kv_heads, means_stride]; those of a KV head are [num_chunks, head_dim]
  DevicePtr<const uint16_t> means;
  int64_t means_stride;  // elements from one KV head to the next
  int64_t num_chunks;    // 0 is allowed; at most 2^28
  // [heads, out_stride], for each head [num_chunks]. Elements after these, up
  // to the next multiple of 16, may be written too. Must not overlap the
  // inputs.
  DevicePtr<float> out;
  int64_t out_stride;  // a multiple of 16
};
absl::Status MeanScores(Stream& stream, const MeanScoresParams& p);

// Checks all parameters but `out`; errors name `op`. Errors: invalid_sizes.
absl::Status CheckMeans(std::string_view op, const MeanScoresParams& p);

// ---- Its bodies ----

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
TIERCEL_KERNEL(MeanScoresCuda, CUstream_st* stream, const MeanScoresParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SELECT_MEAN_SCORES_H_
