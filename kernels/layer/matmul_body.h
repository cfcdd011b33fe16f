#ifndef TIERCEL_KERNELS_LAYER_MATMUL_BODY_H_
#define TIERCEL_KERNELS_LAYER_MATMUL_BODY_H_

// The interface between matmul.cc and its bodies. matmul_cpu.cc is compiled
// once per instruction set, so there are plain structs only, and no inline
// functions.

#include <cstdint>

#include "kernels/device/kernel_entry.h"
#include "kernels/number/dtype.h"
#include "lib/status/status_forward.h"

struct CUstream_st;

namespace tiercel {

class Stream;
struct MatmulOutput;
struct MatmulParams;

// Computes columns [n_begin, n_end) of one output for all rows, in plain loops.
void MatmulReference(const MatmulParams& p, const MatmulOutput& output,
                     int64_t n_begin, int64_t n_end);

// The greatest magnitude of a block becomes the one of these codes that makes
// the block's squared rounding error least (the first of equals). Trying four
// reduces the error of normal activations by 13 %; mean KL of SmolLM2 (Q4_1)
// against exact arithmetic falls from 2.8e-3 to 2.6e-3.
constexpr int kNumQ8Steps = 4;
constexpr float kQ8Steps[kNumQ8Steps] = {127, 126, 125, 124};

// One row's 32 activations as int8: x[i] ~ scale * codes[i]. A block that holds
// a NaN or an infinity has scale NaN and codes 0, so that every output that it
// is part of is NaN.
struct Q8Block {
  int8_t codes[32];
  float scale;
  float scaled_sum;     // scale * sum of codes
  int32_t neg_sum;      // - sum of codes
  int32_t neg_sum_low;  // - sum of the first 16 codes
};

// Activations are laid out in tiles of an ISA's tile rows (the last tile may
// have fewer), each k-major: [k or block][row in tile]. So one pointer walks
// through a tile, whatever the strides of x. A tile of one float row is x.

// A matrix and the destination of its products, for one call.
struct MatmulTarget {
  const uint8_t* panels;
  int64_t panel_bytes;
  DType type;
  int64_t k;
  int64_t n;
  const float* bias;  // [n], or null
  float* out;         // [rows, out_stride]
  int64_t out_stride;
  bool add;  // add to the old values of out
};
// A target with the scale of its call.
struct ScaledTarget : MatmulTarget {
  float scale;
};

// Targets of one call that share a kernel, as their weights have the same type.
// The scale is beside them: in each, nvcc would spill it.
struct MatmulTargets {
  static constexpr int kMost = 3;
  MatmulTarget of[kMost];
  int count = 0;
  float scale = 1.0f;
};

// The target of an output for the rows from `row` on.
ScaledTarget TargetOf(const MatmulParams& p, const MatmulOutput& output,
                      int64_t row);

// Returns true if an output is computed from int8 activations.
bool UsesQ8(const MatmulParams& p, const MatmulOutput& output);

// Runs the prologue, if there is one, by its own op. The result is in its room.
absl::Status RunPrologue(Stream& stream, const MatmulParams& p);

// The work on panels [panel_begin, panel_end) for rows [row_begin, row_end);
// row_begin is the first row of a tile.
struct MatmulRange {
  int64_t panel_begin;
  int64_t panel_end;
  int64_t row_begin;
  int64_t row_end;
};

struct MatmulBodies {
  int q8_tile_rows;
  int f32_tile_rows;
  // The panels of floats for which `f32` needs scratch: [panels][k][16].
  int expanded_panels;

  // Writes one tile of `rows` rows.
  void (*quantise)(const float* x, int64_t x_stride, int rows, int64_t k,
                   Q8Block* tile);
  void (*transpose)(const float* x, int64_t x_stride, int rows, int64_t k,
                    float* tile);

  // Multiplies by quantised weights. `tiles` has the tiles of all rows.
  void (*q8)(const ScaledTarget& target, const MatmulRange& range,
             const Q8Block* tiles);
  // Multiplies by any weights. `expanded` is scratch memory of one thread, used
  // if there are several rows and weights are not floats yet.
  void (*f32)(const ScaledTarget& target, const MatmulRange& range,
              const float* tiles, float* expanded);
};

// The bodies for the instruction set of a stream.
const MatmulBodies& MatmulBodiesOf(const Stream& stream);

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

// Two blocks of 8 rows in the order of the matrix unit of GPUs. The numbers are
// those of Q8Block.
struct alignas(16) Q8Fragments {
  // Lane 4 g + t of a warp has quads t and t + 4 of row g, for the first block
  // and then for the second. A quad is the codes of four consecutive k.
  uint32_t codes[32][4];
  // sums[block][i] belongs to rows 2 i and 2 i + 1.
  struct alignas(16) Sums {
    float scale[2];
    // The sum of the first 16 codes is in the low half, that of the other 16 in
    // the high half, each as an int16.
    uint32_t halves[2];
  } sums[2][4];
};

// The number of elements of an array [tile of 8 rows][pair of blocks].
constexpr int64_t NumQ8Fragments(int64_t rows, int64_t k) {
  return ((rows - 1) / 8 + 1) * ((k / 32 - 1) / 2 + 1);
}

// The following functions queue work on a GPU's stream, with the reference's
// bits, for rows > 0. All pointers are into the GPU's memory, and weights are
// in the order kFragments. Each returns a cudaError_t.
//
// Quantises x after its prologue (quantise.cu). All NumQ8Fragments are written,
// with zeros beyond the rows and the blocks.
struct Activations {
  const float* x;  // [rows, x_stride]
  int64_t x_stride;
  int64_t rows;
  int64_t k;
  const float* norm;  // the norm's weight, [k]; null: there is none
  float eps;
  const float* up;  // [rows, k], of which x is the gate; null: it is none
};
TIERCEL_KERNEL(QuantiseCuda, CUstream_st* stream, const Activations& x,
               Q8Fragments* out);
// Multiplies by quantised weights.
TIERCEL_KERNEL(MultiplyQ8Cuda, CUstream_st* stream,
               const MatmulTargets& targets, const Q8Fragments* x,
               int64_t rows);
// Multiplies one row by quantised weights. k is a multiple of kRowUnit.
constexpr int64_t kRowUnit = 256;
TIERCEL_KERNEL(MultiplyRowQ8Cuda, CUstream_st* stream,
               const MatmulTargets& targets, const Q8Fragments* x);
// Multiplies one row by weights that are not quantised. Rows of weights and x
// are whole packets of 16 bytes.
TIERCEL_KERNEL(MultiplyRowF32Cuda, CUstream_st* stream,
               const MatmulTargets& targets, const float* x);
// Multiplies by any weights.
TIERCEL_KERNEL(MultiplyF32Cuda, CUstream_st* stream,
               const MatmulTargets& targets, const float* x, int64_t x_stride,
               int64_t rows);

// The next two are used with products of a library (BlasLt). This one rounds
// rows of x to F16 or BF16, [all_rows, k], with zeros beyond the first `rows`.
// A row that exceeds the type's range is scaled down by a power of two, and the
// factor back[row] undoes it.
TIERCEL_KERNEL(RoundRowsCuda, CUstream_st* stream, const float* x,
               int64_t x_stride, int64_t rows, int64_t all_rows, int64_t k,
               DType type, uint16_t* out, float* back);
// Writes the products [rows, target.n], each times its row's `back`, to the
// target, with the target's bias, scale and old value.
TIERCEL_KERNEL(StoreRowsCuda, CUstream_st* stream, const float* products,
               const float* back, int64_t rows, const ScaledTarget& target);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_MATMUL_BODY_H_
