#ifndef TIERCEL_KERNELS_KV_KV_CONVERT_H_
#define TIERCEL_KERNELS_KV_KV_CONVERT_H_

#include <cstddef>
#include <cstdint>

#include "kernels/device/device_ptr.h"
#include "kernels/device/kernel_entry.h"
#include "kernels/number/dtype.h"
#include "lib/status/status_forward.h"

struct CUstream_st;

namespace tiercel {

class Stream;

// Converts rows of K or V (kernels/kv/kv_layout.h) from one type to another,
// rounding as KvWrite does. If both types are the same, rows are copied.
// Errors: invalid_sizes, invalid_kv_type; on a GPU also out_of_memory and
// device_failed.
struct KvConvertParams {
  // Consecutive rows of `head_dim` elements; the two do not overlap.
  struct Run {
    DevicePtr<const std::byte> from;
    DevicePtr<std::byte> to;
    int64_t rows;
  };
  DType from;
  DType to;
  int head_dim;  // a multiple of 8
  const Run* runs;
  int64_t num_runs;
};
absl::Status KvConvert(Stream& stream, const KvConvertParams& p);

// ---- Its bodies ----

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

// Queues the work on a GPU's stream, with the reference's bits; `runs`
// replaces that of `p`. Returns a cudaError_t.
TIERCEL_KERNEL(KvConvertCuda, CUstream_st* stream, const KvConvertParams& p,
               DevicePtr<const KvConvertParams::Run> runs);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_KV_CONVERT_H_
