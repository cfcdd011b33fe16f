#ifndef TIERCEL_KERNELS_LAYER_ROPE_H_
#define TIERCEL_KERNELS_LAYER_ROPE_H_

#include <cstdint>

#include "lib/status/status_forward.h"

namespace tiercel {

class Stream;

// Angles of rotary position embedding (Su et al. 2021):
//
//   cos_out[r, i] = scale * cos((position + r) * inv_freq[i]), sin_out likewise
//
// in double, rounded once: at position 128K a float angle is off by 0.01 rad.
// The host computes them, whatever the stream's device. KvWrite
// (kernels/kv/kv_write.h) rotates by them.
struct RopeAnglesParams {
  const double* inv_freq;  // [half]
  int half;
  double scale;      // YaRN's attention factor; 1 otherwise
  int64_t position;  // position of row 0
  int64_t rows;      // 0 is allowed
  float* cos_out;    // [rows, half]
  float* sin_out;    // [rows, half]
};
absl::Status RopeAngles(Stream& stream, const RopeAnglesParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_ROPE_H_
