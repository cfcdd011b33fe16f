#ifndef TIERCEL_KERNELS_SELECT_IMPORTANCE_H_
#define TIERCEL_KERNELS_SELECT_IMPORTANCE_H_

#include <cstdint>

#include "kernels/device/device_ptr.h"
#include "kernels/device/kernel_entry.h"
#include "lib/status/status_forward.h"

struct CUstream_st;

namespace tiercel {

class Stream;

// The importance of candidates to rows: the square roots of attention over the
// candidates alone, summed over the rows and the query heads h that share KV
// head g, h / (heads / kv_heads) = g (Slow-Fast Inference, arXiv 2603.12038).
// The square of the sum is a mean of the rows' attention, between the geometric
// and the arithmetic mean.
//
//   w[r, h, j] = e^((scores[r, h, j] - max_j scores[r, h, j]) / 2)
//   importance[g, j] = decay * before[g, j] +
//                    sum_r sum_h w[r, h, j] / sqrt(sum_j w[r, h, j]^2)
//
// in float, r and then h ascending. sum_j is made by 16 chains of fma over
// j % 16, then a fixed tree. A score of -infinity adds 0: its row does not see
// the candidate. A row and head with another score that is not finite adds
// nothing, so that the result is always finite; the fault shows in attention's
// result.
//
// Scratch: two floats per row and query head. Errors: invalid_sizes,
// invalid_argument, out_of_memory.
struct ImportanceParams {
  // [rows, heads, scores_stride], for each row and head [candidates], as
  // KeyScores and MeanScores leave them
  DevicePtr<const float> scores;
  int64_t scores_stride;  // elements from one head to the next
  int64_t rows;           // 0 is allowed
  int heads;              // a multiple of kv_heads
  int kv_heads;
  int64_t candidates;  // 0 is allowed; at most 2^28
  float decay;         // factor of `before`, 0 to 2^20
  // Both are [kv_heads, importance_stride], for each KV head [candidates].
  // `before` must be finite; it may be `importance` itself, and must not
  // overlap it otherwise. The scores overlap neither.
  DevicePtr<const float> before;
  DevicePtr<float> importance;
  int64_t importance_stride;  // elements from one KV head to the next
};
absl::Status AddImportance(Stream& stream, const ImportanceParams& p);

// ---- Its bodies ----

void AddImportanceReference(const ImportanceParams& p);

// The maximum and the norm that normalise the weights of one row and head.
struct RootWeights {
  float max;
  float length;  // sqrt(sum_j w_j^2); 0: the head adds nothing
};
using RootWeightsFn = RootWeights(const float* scores, int64_t candidates);

// Adds w_j / length for some of the candidates.
using AddRootsFn = void(const float* scores, int64_t candidates,
                        const RootWeights& weights, float* importance);

namespace portable {
RootWeightsFn WeighRoots;
AddRootsFn AddRoots;
}  // namespace portable
namespace avx2 {
RootWeightsFn WeighRoots;
AddRootsFn AddRoots;
}  // namespace avx2
namespace avx512 {
RootWeightsFn WeighRoots;
AddRootsFn AddRoots;
}  // namespace avx512

// Queues the work on a GPU's stream, with the reference's bits; `weights` is
// scratch of [rows, heads]. Returns a cudaError_t.
TIERCEL_KERNEL(AddImportanceCuda, CUstream_st* stream,
               const ImportanceParams& p, DevicePtr<RootWeights> weights);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SELECT_IMPORTANCE_H_
