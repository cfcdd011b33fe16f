#ifndef TIERCEL_KERNELS_SELECT_COVERAGE_H_
#define TIERCEL_KERNELS_SELECT_COVERAGE_H_

#include <cstdint>

#include "kernels/device/device_ptr.h"
#include "kernels/device/kernel_entry.h"
#include "lib/status/status_forward.h"

struct CUstream_st;

namespace tiercel {

class Stream;

// The share of a row's attention that falls on the positions that a view shows:
// those that its KV head g = h / (heads / kv_heads) keeps, and all from
// `newest` on.
//
//   w[h, j] = e^(scores[h, j] - max_j scores[h, j])
//   out[h] = sum_seen w[h, j] / sum_j w[h, j]
//
// in float. Sums over consecutive j are made by 16 chains, then a fixed tree;
// sums over kept positions are made in double, in their order. A weight below
// e^-87 counts as e^-87. A head with a score that is not finite has NaN.
//
// Errors: invalid_sizes, invalid_position; on a GPU out_of_memory too, and
// device_failed.
struct CoverageParams {
  // [heads, scores_stride], for each head [positions], as KeyScores leaves
  // them. They become weights.
  DevicePtr<float> scores;
  int64_t scores_stride;  // elements from one head to the next
  int heads;              // a multiple of kv_heads
  int kv_heads;
  int64_t positions;  // 1 at least
  // [kv_heads][num_kept]: distinct positions before `newest`
  const int32_t* const* kept;
  int64_t num_kept;
  int64_t newest;        // 0 to positions
  DevicePtr<float> out;  // [heads]
};
absl::Status Coverage(Stream& stream, const CoverageParams& p);

// ---- Its bodies ----

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

// Queues the work on a GPU's stream, with the reference's bits; `kept`,
// [kv_heads, num_kept], replaces that of `p`. Returns a cudaError_t.
TIERCEL_KERNEL(CoverageCuda, CUstream_st* stream, const CoverageParams& p,
               DevicePtr<const int32_t> kept);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SELECT_COVERAGE_H_
