#ifndef TIERCEL_KERNELS_KV_KV_WRITE_H_
#define TIERCEL_KERNELS_KV_KV_WRITE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/device/device_ptr.h"
#include "kernels/device/kernel_entry.h"
#include "kernels/kv/kv_layout.h"
#include "kernels/number/dtype.h"
#include "lib/status/status_forward.h"

struct CUstream_st;

namespace tiercel {

class Stream;

// Rotary position embedding (Su et al. 2021) of some rows: turns the pair
// (x[i], x[i + half]) of every head by angle i, one of RopeAngles
// (kernels/layer/rope.h). All elements of queries are multiplied by `q_scale`
// afterwards.
struct Rotation {
  int half = 0;  // 2 * half <= head_dim, later elements stay; 0: all stay
  DevicePtr<const float> cos;  // [rows, half]
  DevicePtr<const float> sin;  // [rows, half]
  DevicePtr<float> q;          // [rows, q_stride], a row is [heads, head_dim]
  int64_t q_stride = 0;
  int heads = 0;  // query heads, 0 is allowed
  float q_scale = 1.0f;

  bool ChangesQueries() const { return half > 0 || q_scale != 1.0f; }
};

// Writes the keys and values of consecutive positions into their pages,
// rounding to the page's types (nearest, ties to even; q8_0: d = max|x| / 127
// in f16, q = round(x / d) with the unrounded d). Keys are rotated before (`k`
// stays), and the rows' queries with them, in place: a GPU does it in one
// launch a page.
struct KvWriteParams {
  DevicePtr<const float> k;  // [rows, k_stride], a row is [kv_heads, head_dim]
  DevicePtr<const float> v;  // [rows, v_stride], a row is [kv_heads, head_dim]
  int64_t k_stride;          // floats from one row to the next
  int64_t v_stride;
  int64_t rows;

  KvLayout layout;
  const DevicePtr<std::byte>*
      pages;           // page i holds positions from i * kPageTokens on
  int64_t first_page;  // the page index of pages[0]
  int64_t num_pages;
  int64_t position;  // absolute position of row 0; all rows within the pages
  Rotation rotation = {};
};
absl::Status KvWrite(Stream& stream, const KvWriteParams& p);

// ---- Its bodies ----

void KvWriteReference(const KvWriteParams& p);

// Writes one head's row of K or V, rounded to the page's type, with the bits of
// the reference, KvRowFromF32 of kernels/kv/kv_row.h.
using KvRowWriteFn = void(DType type, const float* x, int head_dim,
                          std::byte* row);

namespace portable {
KvRowWriteFn KvRowWrite;
}
namespace avx2 {
KvRowWriteFn KvRowWrite;
}
namespace avx512 {
KvRowWriteFn KvRowWrite;
}
namespace avx512vnni {
KvRowWriteFn KvRowWrite;
}

// Rows of K or of V, and their destination in one page.
struct KvHalf {
  DType type;
  const float* x;      // [rows, stride], a row is [kv_heads, head_dim]
  int64_t stride;      // floats from one row to the next
  std::byte* cells;    // cell of head 0 and row 0; those of next rows follow
  int64_t row_bytes;   // bytes of a cell's row
  int64_t head_bytes;  // bytes from one head's cells to the next's
};
struct KvPageRows {
  KvHalf k;
  KvHalf v;
  int64_t rows;  // at least one
  int kv_heads;
  int head_dim;
  Rotation rotation;
};

// Queues the work on a GPU's stream, with the reference's bits. Returns a
// cudaError_t.
TIERCEL_KERNEL(KvWriteCuda, CUstream_st* stream, const KvPageRows& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_KV_WRITE_H_
