#ifndef TIERCEL_KERNELS_KV_KEY_NORMS_BODY_H_
#define TIERCEL_KERNELS_KV_KEY_NORMS_BODY_H_

#include <cstddef>
#include <cstdint>

#include "kernels/device/kernel_entry.h"
#include "kernels/number/dtype.h"

struct CUstream_st;

namespace tiercel {

struct KeyNormsParams;
void KeyNormsReference(const KeyNormsParams& p);

// The norms of `rows` consecutive rows of one KV head; rows >= 1.
struct NormRows {
  DType type;
  const std::byte* row;
  int64_t row_bytes;
  int head_dim;
  int rows;
  uint16_t* out;  // [rows]
};
using NormRowsFn = void(const NormRows& n);

namespace portable {
NormRowsFn ComputeNorms;
}
namespace avx2 {
NormRowsFn ComputeNorms;
}
namespace avx512 {
NormRowsFn ComputeNorms;
}

// Queues the work on a GPU's stream, with the reference's bits. The array of
// pages is in the GPU's memory too. Returns a cudaError_t.
TIERCEL_KERNEL int KeyNormsCuda(CUstream_st* stream, const KeyNormsParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_KEY_NORMS_BODY_H_
