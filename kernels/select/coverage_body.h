#ifndef TIERCEL_KERNELS_SELECT_COVERAGE_BODY_H_
#define TIERCEL_KERNELS_SELECT_COVERAGE_BODY_H_

#include <cstdint>

#include "kernels/device/kernel_entry.h"

struct CUstream_st;

namespace tiercel {

struct CoverageParams;
void CoverageReference(const CoverageParams& p);

// The sums of one head's weights.
struct HeadSums {
  float all;     // NaN: a score is not finite
  float newest;  // the sum from position `newest` on
};
// Turns the scores of one head into weights; positions >= 1.
using ExponentiatePositionsFn = HeadSums(float* scores, int64_t positions,
                                         int64_t newest);

// The coverage of one head: the share of its kept and its newest positions.
constexpr float CoverageOf(const HeadSums& sums, const float* weights,
                           const int32_t* kept, int64_t num_kept) {
  auto seen = static_cast<double>(sums.newest);
  for (int64_t i = 0; i < num_kept; ++i) {
    seen += static_cast<double>(weights[kept[i]]);
  }
  return static_cast<float>(seen / static_cast<double>(sums.all));
}

namespace portable {
ExponentiatePositionsFn ExponentiatePositions;
}
namespace avx2 {
ExponentiatePositionsFn ExponentiatePositions;
}
namespace avx512 {
ExponentiatePositionsFn ExponentiatePositions;
}

// Queues the work on a GPU's stream, with the reference's bits. `kept` is
// [kv_heads, num_kept] in the GPU's memory and replaces that of `p`. Returns a
// cudaError_t.
TIERCEL_KERNEL int CoverageCuda(CUstream_st* stream, const CoverageParams& p,
                                const int32_t* kept);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SELECT_COVERAGE_BODY_H_
