#ifndef TIERCEL_KERNELS_SELECT_COVERAGE_H_
#define TIERCEL_KERNELS_SELECT_COVERAGE_H_

#include <cstdint>

#include "lib/status/status_forward.h"

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
// Errors: invalid_shape, invalid_position; on a GPU out_of_memory too, and
// device_failed.
struct CoverageParams {
  // [heads, scores_stride], for each head [positions], as KeyScores leaves
  // them. They become weights.
  float* scores;
  int64_t scores_stride;  // elements from one head to the next
  int heads;              // a multiple of kv_heads
  int kv_heads;
  int64_t positions;  // 1 at least
  // [kv_heads][num_kept] in the host's memory: distinct positions before
  // `newest`
  const int32_t* const* kept;
  int64_t num_kept;
  int64_t newest;  // 0 to positions
  float* out;      // [heads]
};
absl::Status Coverage(Stream& stream, const CoverageParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SELECT_COVERAGE_H_
