#ifndef TIERCEL_KERNELS_LAYER_ROPE_H_
#define TIERCEL_KERNELS_LAYER_ROPE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/machine/stream.h"

namespace tiercel {

// Angles of rotary position embedding (Su et al. 2021):
//
//   cos_out[r, i] = scale * cos((position + r) * inv_freq[i]), sin_out likewise
//
// in double, rounded once: at position 128K a float angle is off by 0.01 rad.
struct RopeAnglesParams {
  const double* inv_freq;  // [half]
  int half;
  double scale;      // YaRN's attention factor; 1 otherwise
  int64_t position;  // of row 0
  int64_t rows;      // 0 is allowed
  float* cos_out;    // [rows, half]
  float* sin_out;    // [rows, half]
};
absl::Status RopeAngles(Stream& stream, const RopeAnglesParams& p);

// Rotates the pair (x[i], x[i + half]) of every head in place by angle i.
struct RopeParams {
  float* x;  // [rows, stride], a row is [heads, head_dim]
  int64_t stride;
  int64_t rows;  // 0 is allowed
  int heads;
  int head_dim;      // elements from 2 * half on are left as they are
  int half;          // 2 * half <= head_dim
  const float* cos;  // [rows, half]
  const float* sin;  // [rows, half]
};
absl::Status Rope(Stream& stream, const RopeParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_ROPE_H_
