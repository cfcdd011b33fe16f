#ifndef TIERCEL_KERNELS_LAYER_ROPE_PARAMS_H_
#define TIERCEL_KERNELS_LAYER_ROPE_PARAMS_H_

#include <stdint.h>

namespace tiercel {

// Rotates the pair (x[i], x[i + half]) of every head by angle i, in place, in q
// alone or in q and k.
struct RopeParams {
  struct Heads {
    float* x;  // [rows, stride], a row is [count, head_dim]
    int64_t stride;
    int count;
  };

  int num_tensors;  // 1 or 2
  Heads tensors[2];
  int64_t rows;      // 0 is allowed
  int head_dim;      // elements from 2 * half on do not change
  int half;          // 2 * half <= head_dim
  const float* cos;  // [rows, half]
  const float* sin;  // [rows, half]

  constexpr int64_t AllHeads() const {
    return tensors[0].count + (num_tensors > 1 ? tensors[1].count : 0);
  }
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_ROPE_PARAMS_H_
