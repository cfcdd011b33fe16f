#ifndef TIERCEL_KERNELS_KV_KV_CONVERT_BODY_H_
#define TIERCEL_KERNELS_KV_KV_CONVERT_BODY_H_

#include <cstddef>
#include <cstdint>

#include "kernels/device/kernel_entry.h"
#include "kernels/number/dtype.h"

struct CUstream_st;

namespace tiercel {

struct KvConvertParams;

// Converts one row with the bits of KvRowToF32, then KvRowFromF32
// (kernels/kv/kv_row.h).
using KvRowConvertFn = void(DType from, const std::byte* row, DType to,
                            int head_dim, std::byte* out);

KvRowConvertFn KvRowConvertReference;
namespace portable {
KvRowConvertFn KvRowConvert;
}
namespace avx2 {
KvRowConvertFn KvRowConvert;
}
namespace avx512 {
KvRowConvertFn KvRowConvert;
}

// Queues the work on a GPU's stream, with the reference's bits. The array of
// runs is in the GPU's memory too. Returns a cudaError_t.
TIERCEL_KERNEL int KvConvertCuda(CUstream_st* stream, const KvConvertParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_KV_CONVERT_BODY_H_
