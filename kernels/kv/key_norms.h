#ifndef TIERCEL_KERNELS_KV_KEY_NORMS_H_
#define TIERCEL_KERNELS_KV_KEY_NORMS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/device/device_ptr.h"
#include "kernels/device/kernel_entry.h"
#include "kernels/kv/device_pages.h"
#include "kernels/kv/kv_layout.h"
#include "kernels/number/dtype.h"
#include "lib/status/status_forward.h"

struct CUstream_st;

namespace tiercel {

class Stream;

// The lengths of the keys of positions first <= j < last, as they are stored
// (rotating a key does not change its length):
//
//   out[g, j - first] = f16(sqrt(dot(k_j, k_j)))
//
// in float until it is rounded; the sum is one chain of fma over head_dim. A
// key that is not finite makes its norm not finite, and so does a norm beyond
// 65,504.
//
// V and the keys of other positions are not read, and pages without a position
// of first..last - 1 may be null. Errors: invalid_sizes, invalid_kv_type,
// invalid_position, invalid_page.
struct KeyNormsParams {
  KvLayout layout;                    // head_dim a multiple of 8
  const DevicePtr<std::byte>* pages;  // pages of this layer
  int64_t first_page;                 // the page index of pages[0]
  int64_t num_pages;
  int64_t first;  // first == last is allowed
  int64_t last;
  // f16 [kv_heads, out_stride], for each KV head [last - first]
  DevicePtr<uint16_t> out;
  int64_t out_stride;  // elements from one KV head to the next
};
absl::Status KeyNorms(Stream& stream, const KeyNormsParams& p);

// ---- Its bodies ----

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

// Queues the work on a GPU's stream, with the reference's bits; `pages`
// replaces that of `p`. Returns a cudaError_t.
TIERCEL_KERNEL(KeyNormsCuda, CUstream_st* stream, const KeyNormsParams& p,
               const DevicePages& pages);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_KEY_NORMS_H_
