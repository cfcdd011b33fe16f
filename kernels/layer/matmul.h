#ifndef TIERCEL_KERNELS_LAYER_MATMUL_H_
#define TIERCEL_KERNELS_LAYER_MATMUL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/device/device_ptr.h"
#include "kernels/device/stream.h"
#include "kernels/layer/packed_matrix.h"

namespace tiercel {

// The type to which activations are converted if weights are quantised.
enum class Compute {
  kQ8,   // int8 per 32: exact int32 dot products of blocks
  kF32,  // float32; weights are expanded to it
};

enum class StoreMode { kAssign, kAdd };

// out[r, n] = scale (bias[n] + sum_k x[r, k] w[n, k])
//             (+ the old value, with kAdd)
//
// for up to three matrices that read the same x (Q, K, V; gate, up). Every
// output is one chain over ascending k, whatever the number of rows:
//   kQ8, quantised w: acc = fma(float(block dot), d_w * d_x, acc) per block of
//     32; if the type has a minimum, acc = fma(m_w, d_x * sum_x, acc) next.
//     Scales and minimums of 16 weights are factors of the dot and of sum_x
//   otherwise: acc = fma(x[k], w[k], acc) per k
// then bias, then the scale, then the addition. x is quantised per 32 with d_x
// = max|x| / s (float), where s is the one of 127, 126, 125, 124 that rounds
// best, and q = round(x / d_x), ties to even, within +-127 even if d_x is
// subnormal. A block that holds a NaN or an infinity makes its row's outputs
// NaN. Every ISA, the kernels of GPUs and the reference give the same bits.
//
// With `fast`, a GPU multiplies by its matrix unit in f16 where FastMatmulFits
// (fast_matmul.h), but not quantised weights with kF32: x and weights are
// rounded to f16, sums are f32. A row's bits depend on no other row.
//
// If a stream has a library for it (Stream::blas), the library multiplies 64
// and more rows of x, rounded to the weights' type, by weights of F16 or BF16,
// in its own order. Among such calls a row's bits depend on no other row. A row
// whose greatest magnitude is in the type's last power of two, or beyond, is
// divided by a power of two before.
//
// A prologue computes x first, with the bits of its own op; a GPU that needs
// int8 activations does both in one launch.
//
// No output may overlap x or another output. Errors: invalid_argument (null, or
// weights in the order of another kind of device), invalid_sizes, out_of_memory
// (no scratch; nothing was written), device_failed.
struct MatmulPrologue {
  enum class Op {
    kNone,
    kNorm,  // x[r] is normed by `with`, [k], and eps (rms_norm.h)
    kGate,  // x[r] is a gate of `with`, [rows, k] (swiglu.h); x_stride is k
  };
  Op op = Op::kNone;
  DevicePtr<const float> with = {};
  float eps = 0.0f;
  // [rows, k], where the computed x may be kept; with kGate it may be x.
  DevicePtr<float> room = {};
};
struct MatmulOutput {
  const PackedMatrix* weights;  // [n, k]
  DevicePtr<const float> bias;  // [n], or null
  DevicePtr<float> out;         // [rows, out_stride]
  int64_t out_stride;           // floats, >= n
  StoreMode store;
};
struct MatmulParams {
  DevicePtr<const float> x;  // [rows, x_stride], of which k columns are used
  int64_t x_stride;
  int64_t rows;  // 0 is allowed
  Compute compute;
  int num_outputs;  // 1 to 3
  MatmulOutput outputs[3];
  bool fast = false;
  MatmulPrologue prologue = {};
  float scale = 1.0f;
};
absl::Status Matmul(Stream& stream, const MatmulParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_MATMUL_H_
