#ifndef TIERCEL_KERNELS_LAYER_ROPE_H_
#define TIERCEL_KERNELS_LAYER_ROPE_H_

#include <cstdint>

#include "kernels/device/device_ptr.h"
#include "kernels/device/kernel_entry.h"
#include "lib/status/status_forward.h"

struct CUstream_st;

namespace tiercel {

class Stream;

// Angles of rotary position embedding (Su et al. 2021):
//
//   cos_out[r, i] = scale * cos((position + r) * inv_freq[i]), sin_out likewise
//
// in double, rounded once: at position 128K a float angle is off by 0.01 rad.
// The host computes them, whatever the stream's device.
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

// Rotates the pair (x[i], x[i + half]) of every head by angle i, in place, in q
// alone or in q and k.
struct RopeParams {
  struct Heads {
    DevicePtr<float> x;  // [rows, stride], a row is [count, head_dim]
    int64_t stride;
    int count;
  };

  int num_tensors;  // 1 or 2
  Heads tensors[2];
  int64_t rows;                // 0 is allowed
  int head_dim;                // elements from 2 * half on do not change
  int half;                    // 2 * half <= head_dim
  DevicePtr<const float> cos;  // [rows, half]
  DevicePtr<const float> sin;  // [rows, half]

  constexpr int64_t AllHeads() const {
    return tensors[0].count + (num_tensors > 1 ? tensors[1].count : 0);
  }
};
absl::Status Rope(Stream& stream, const RopeParams& p);

// ---- Its bodies ----

struct RopeParams;

// These compute rows begin..end - 1. The plain loops are the CPU's body too, as
// a rotation takes under 1 % of the time of the products around it.
void RopeAnglesReference(const RopeAnglesParams& p, int64_t begin, int64_t end);
void RopeReference(const RopeParams& p, int64_t begin, int64_t end);

// Queues all rows on a GPU's stream, with the same bits. Returns a cudaError_t.
// Angles are computed on the host, in double.
TIERCEL_KERNEL int RopeCuda(CUstream_st* stream, const RopeParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_ROPE_H_
