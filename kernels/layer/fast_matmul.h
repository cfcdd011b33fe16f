#ifndef TIERCEL_KERNELS_LAYER_FAST_MATMUL_H_
#define TIERCEL_KERNELS_LAYER_FAST_MATMUL_H_

#include <cstdint>

#include "kernels/device/kernel_entry.h"
#include "kernels/layer/matmul_body.h"
#include "kernels/number/dtype.h"

struct CUstream_st;

namespace tiercel {

// A block of 32 columns of 8 rows of x as f16, in the order of the matrix unit:
// lane 4 g + t of a warp has quads t and t + 4 of row g. A quad is four
// consecutive k, two words.
struct alignas(16) F16Fragments {
  uint32_t words[32][4];
};

// `rows` rounded up to whole tiles of 8.
constexpr int64_t WholeTiles(int64_t rows) { return ((rows - 1) / 8 + 1) * 8; }

// The number of elements of an array [tile of 8 rows][block].
constexpr int64_t NumF16Fragments(int64_t rows, int64_t k) {
  return WholeTiles(rows) / 8 * (k / 32);
}

// The scratch memory that a product takes: fragments and factors of rows.
constexpr int64_t FastMatmulScratchBytes(int64_t rows, int64_t k) {
  return NumF16Fragments(rows, k) * static_cast<int64_t>(sizeof(F16Fragments)) +
         WholeTiles(rows) * static_cast<int64_t>(sizeof(float));
}

// Returns true if MultiplyF16Cuda multiplies by such weights.
constexpr bool FastMatmulFits(DType type, int64_t k) {
  return type != DType::kF32 && k % 64 == 0;
}

// Both queue work on a GPU's stream, for rows > 0. All pointers are into the
// GPU's memory, and weights are in the order kFragments. Each returns a
// cudaError_t.
//
// Rounds x to f16. All NumF16Fragments are written, with zeros beyond the rows.
// A row whose greatest magnitude is 2^15 or more is scaled down by a power of
// two, and the factor back[row] undoes it; `back` has WholeTiles.
TIERCEL_KERNEL(RoundFragmentsCuda, CUstream_st* stream, const float* x,
               int64_t x_stride, int64_t rows, int64_t k, F16Fragments* out,
               float* back);

// Multiplies by matrix steps of f16, with sums in f32:
//
//   out[r, n] = back[r] * sum of x[r, k] f16(w[n, k]), then bias and old value
//
// A weight of 2^16 or more becomes infinite. An output is one chain of steps
// over ascending k, so that a row's bits depend on no other row, nor on their
// number.
TIERCEL_KERNEL(MultiplyF16Cuda, CUstream_st* stream,
               const MatmulTargets& targets, const F16Fragments* x,
               const float* back, int64_t rows);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_FAST_MATMUL_H_
