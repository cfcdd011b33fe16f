#ifndef TIERCEL_KERNELS_LAYER_MATMUL_BODY_H_
#define TIERCEL_KERNELS_LAYER_MATMUL_BODY_H_

// What matmul.cc and its bodies agree on. matmul_cpu.cc is compiled once per
// instruction set: plain structs only, no inline functions.

#include <cstdint>

#include "kernels/number/dtype.h"

struct CUstream_st;

namespace tiercel {

struct MatmulOutput;
struct MatmulParams;

// Columns [n_begin, n_end) of one output, all rows, in plain loops.
void MatmulReference(const MatmulParams& p, const MatmulOutput& output,
                     int64_t n_begin, int64_t n_end);

// The greatest magnitude of a block becomes one of these codes, whichever makes
// the block's squared rounding error least (the first of equals). Trying four
// takes 13 % off the error of normal activations; mean KL of SmolLM2 (Q4_1)
// against exact arithmetic falls from 2.8e-3 to 2.6e-3.
constexpr int kNumQ8Steps = 4;
constexpr float kQ8Steps[kNumQ8Steps] = {127, 126, 125, 124};

// One row's 32 activations as int8: x[i] ~ scale * codes[i]. A block that holds
// a NaN or an infinity has scale NaN and codes 0, so that it shows in every
// output it touches.
struct Q8Block {
  int8_t codes[32];
  float scale;
  float scaled_sum;     // scale * sum of codes
  int32_t neg_sum;      // - sum of codes
  int32_t neg_sum_low;  // - sum of the first 16 codes
};

// Activations are laid out in tiles of an ISA's tile rows, the last tile with
// what is left, each k-major: [k or block][row in tile]. So one pointer walks
// through a tile, whatever the strides of x. A tile of one float row is x.

// A matrix and where its products go, for one call.
struct MatmulTarget {
  const uint8_t* panels;
  int64_t panel_bytes;
  DType type;
  int64_t k;
  int64_t n;
  const float* bias;  // [n], or null
  float* out;         // [rows, out_stride]
  int64_t out_stride;
  bool add;  // to what is in out
};

// Targets of one call that a kernel does together: their weights have one type.
struct MatmulTargets {
  static constexpr int kMost = 3;
  MatmulTarget of[kMost];
  int count = 0;
};

// Panels [panel_begin, panel_end) for rows [row_begin, row_end); row_begin is
// the first row of a tile.
struct MatmulRange {
  int64_t panel_begin;
  int64_t panel_end;
  int64_t row_begin;
  int64_t row_end;
};

struct MatmulBodies {
  int q8_tile_rows;
  int f32_tile_rows;
  // Panels of floats that `f32` wants room for: [panels][k][16].
  int expanded_panels;

  // Writes one tile of `rows` rows.
  void (*quantise)(const float* x, int64_t x_stride, int rows, int64_t k,
                   Q8Block* tile);
  void (*transpose)(const float* x, int64_t x_stride, int rows, int64_t k,
                    float* tile);

  // Quantised weights, tiles of all rows at `tiles`.
  void (*q8)(const MatmulTarget& target, const MatmulRange& range,
             const Q8Block* tiles);
  // Any weights; `expanded` is scratch memory of one thread, used where rows
  // are several and weights are not floats yet.
  void (*f32)(const MatmulTarget& target, const MatmulRange& range,
              const float* tiles, float* expanded);
};

namespace portable {
extern const MatmulBodies kMatmulBodies;
}
namespace avx2 {
extern const MatmulBodies kMatmulBodies;
}
namespace avxvnni {
extern const MatmulBodies kMatmulBodies;
}
namespace avx512 {
extern const MatmulBodies kMatmulBodies;
}
namespace avx512vnni {
extern const MatmulBodies kMatmulBodies;
}

// What kernels make of two blocks of 8 rows, as the matrix unit takes them:
// the same numbers as Q8Block's.
struct alignas(16) Q8Fragments {
  // Lane 4 g + t of a warp has of row g quads t and t + 4 of the first block,
  // then of the second. A quad is the codes of four consecutive k.
  uint32_t codes[32][4];
  // sums[block][i] belongs to rows 2 i and 2 i + 1.
  struct alignas(16) Sums {
    float scale[2];
    // The sum of the first 16 codes is in the low half, that of the others in
    // the high one, each as an int16.
    uint32_t halves[2];
  } sums[2][4];
};

// [tile of 8 rows][pair of blocks]
constexpr int64_t NumQ8Fragments(int64_t rows, int64_t k) {
  return ((rows - 1) / 8 + 1) * ((k / 32 - 1) / 2 + 1);
}

// Queued on a GPU's stream, with the reference's bits, for rows > 0, pointers
// into its memory and weights in fragments. Each returns a cudaError_t.
//
// All of NumQ8Fragments; there are zeros beyond the rows and the blocks.
int QuantiseCuda(CUstream_st* stream, const float* x, int64_t x_stride,
                 int64_t rows, int64_t k, Q8Fragments* out);
// Quantised weights.
int MultiplyQ8Cuda(CUstream_st* stream, const MatmulTargets& targets,
                   const Q8Fragments* x, int64_t rows);
// One row by quantised weights, k being a multiple of kRowUnit.
constexpr int64_t kRowUnit = 256;
int MultiplyRowQ8Cuda(CUstream_st* stream, const MatmulTargets& targets,
                      const Q8Fragments* x);
// One row by weights that are not quantised, in whole packets of 16 bytes.
int MultiplyRowF32Cuda(CUstream_st* stream, const MatmulTargets& targets,
                       const float* x);
// Any weights.
int MultiplyF32Cuda(CUstream_st* stream, const MatmulTargets& targets,
                    const float* x, int64_t x_stride, int64_t rows);

// Around products that a library makes (BlasLt). Rows of x as F16 or BF16,
// [all_rows, k]: zeros beyond the first `rows`. A row that the type's range
// does not hold is made smaller, and back[row], a power of two, undoes it.
int RoundRowsCuda(CUstream_st* stream, const float* x, int64_t x_stride,
                  int64_t rows, int64_t all_rows, int64_t k, DType type,
                  uint16_t* out, float* back);
// Products [rows, target.n], each times its row's `back`, to their place, with
// what is to be added.
int StoreRowsCuda(CUstream_st* stream, const float* products, const float* back,
                  int64_t rows, const MatmulTarget& target);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_MATMUL_BODY_H_
