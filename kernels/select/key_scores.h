#ifndef TIERCEL_KERNELS_SELECT_KEY_SCORES_H_
#define TIERCEL_KERNELS_SELECT_KEY_SCORES_H_

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

// The scores that attention gives keys before its softmax: those of consecutive
// rows with the positions first <= j < last, for query head h and its KV head
// h / (heads / kv_heads).
//
//   out[r, h, j - first] = scale * dot(q[r, h], k_j)
//
// by one chain of fma over head_dim, which is Attention's, so that each score
// has the same bits as there. A position after the row's own, j > position + r,
// has -infinity. A query or a key that is not finite makes its scores not
// finite.
//
// V and the keys of other positions are not read, and pages without a position
// of first..last - 1 may be null. Errors: invalid_sizes, invalid_kv_type,
// invalid_position, invalid_page.
struct KeyScoresParams {
  DevicePtr<const float>
      q;             // [rows, q_stride], a row is [heads, head_dim], rotated
  int64_t q_stride;  // floats from one row to the next
  int64_t rows;      // 0 is allowed
  int heads;         // a multiple of layout.kv_heads
  float scale;       // scale of the scores, usually 1 / sqrt(head_dim)

  KvLayout layout;                    // head_dim a multiple of 8
  const DevicePtr<std::byte>* pages;  // pages of this layer
  int64_t first_page;                 // the page index of pages[0]
  int64_t num_pages;
  int64_t position;  // absolute position of row 0
  int64_t first;     // positions that are scored, which the last row sees:
  int64_t last;      // first <= last <= position + rows

  // [rows, heads, out_stride], for each row and head [last - first]; must not
  // overlap q
  DevicePtr<float> out;
  int64_t out_stride;  // floats from one head to the next
};
absl::Status KeyScores(Stream& stream, const KeyScoresParams& p);

// ---- Its bodies ----

void KeyScoresReference(const KeyScoresParams& p);

// The scores of cells begin..end - 1 of one page and KV head, for `rows`
// consecutive rows and the query heads that share the KV head.
struct KeyBlock {
  const float* q;  // the first query; the next head is head_dim further
  int64_t q_stride;
  int64_t rows;
  int group;  // query heads of this KV head
  int head_dim;
  float scale;

  const std::byte* k;  // this head's [kPageTokens][head_dim]
  DType type_k;
  int64_t k_row_bytes;
  int begin;
  int end;       // after begin; the last row sees the cells before it
  int64_t seen;  // row r sees the cells before seen + r

  float* out;  // score of cell `begin`
  int64_t out_head_stride;
  int64_t out_row_stride;
};
using KeyBlockFn = void(const KeyBlock& b);

namespace portable {
KeyBlockFn ComputeKeyBlock;
}
namespace avx2 {
KeyBlockFn ComputeKeyBlock;
}
namespace avx512 {
KeyBlockFn ComputeKeyBlock;
}

// Queues the work on a GPU's stream, with the reference's bits; `pages`
// replaces that of `p`. Returns a cudaError_t.
TIERCEL_KERNEL(KeyScoresCuda, CUstream_st* stream, const KeyScoresParams& p,
               const DevicePages& pages);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SELECT_KEY_SCORES_H_
