#ifndef TIERCEL_KERNELS_ATTENTION_ATTENTION_H_
#define TIERCEL_KERNELS_ATTENTION_ATTENTION_H_

#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "kernels/attention/head_view.h"
#include "kernels/device/device_ptr.h"
#include "kernels/device/stream.h"
#include "kernels/kv/kv_layout.h"

namespace tiercel {

// A part of the pages that a call of Attention reads. Calls for parts that
// follow each other, on any devices, give the bits of one call for all pages:
// each continues the fold where the one before it stopped.
struct AttentionPart {
  static constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();

  // The page numbers [first, end), each at most that of the first row's own
  // page; kToTheEnd: the last part.
  int64_t first = 0;
  int64_t end = kToTheEnd;
  // The fold's maxima and sums, [rows, heads], which a part reads unless it
  // begins with the first page that exists, and writes. The undivided outputs
  // are in `out`. Null: all pages are read.
  DevicePtr<float> max;
  DevicePtr<float> sum;

  bool is_whole() const { return max == nullptr; }
};

// Causal attention of consecutive rows over paged KV. Row r is at position
// t = position + r, and query head h has KV head h / (heads / kv_heads). Over
// the positions j in begin..t that the KV head's view shows:
//
//   score_j = scale * dot(q[r, h], k_j)      one chain of fma over head_dim
//   out[r, h] = sum_j e^(score_j - m) v_j / sum_j e^(score_j - m)
//
// computed per page (block): m_b = max score, s_b = sum of weights, o_b =
// sum of weighted v (a chain over positions), then folded in page order:
//
//   m' = max(m, m_b); s = s e^(m - m') + s_b e^(m_b - m'); o likewise
//
// A page of which a row's head sees nothing is left out of its fold. So a row's
// bits depend neither on other rows, on threads or on the place of pages (row
// invariance), nor on cells that it does not see: these never reach a result,
// and a page that no row sees in any head may be null. A score that is not
// finite makes the output of its row and head NaN.
//
// `fast` allows a GPU other bits, for prompts: q, weights and (if they are
// q8_0) K and V are rounded to f16, and products are summed by its matrix unit,
// in blocks of 64 positions from multiples of 64 on (flash_attention.h). Among
// such calls a row's bits depend on no other row, as long as K and V are
// finite. It changes nothing on other devices, under a view, and for types or
// head dimensions that FlashAttentionFits refuses.
//
// A `part` reads some of the pages, without a view and without `fast`.
//
// Scratch: at most 8 MiB of partial results (more only if one row of one page
// needs more), 1 KiB * head_dim per thread, and 9 bytes a page if there is a
// view. It does not depend on the length of the KV otherwise. Errors:
// invalid_sizes, invalid_kv_type, invalid_position, invalid_page, invalid_view,
// out_of_memory.
struct AttentionParams {
  DevicePtr<const float> q;  // [rows, q_stride], a row is [heads, head_dim]
  int64_t q_stride;          // floats from one row to the next
  int64_t rows;              // 0 is allowed
  int heads;                 // a multiple of layout.kv_heads
  float scale;               // scale of the scores, usually 1 / sqrt(head_dim)

  KvLayout layout;                    // head_dim a multiple of 8
  const DevicePtr<std::byte>* pages;  // pages of this layer
  int64_t first_page;                 // the page index of pages[0]
  int64_t num_pages;
  int64_t begin;     // the first position that exists
  int64_t position;  // absolute position of row 0, its own K and V included
  const HeadView* view = nullptr;  // [kv_heads]; null: rows see all positions

  DevicePtr<float> out;  // [rows, heads * head_dim]; must not overlap q
  bool fast = false;
  AttentionPart part = {};

  // Returns true if the fold continues that of an earlier part.
  bool Continues() const {
    return !part.is_whole() && part.first > begin / kPageTokens;
  }
};
absl::Status Attention(Stream& stream, const AttentionParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_ATTENTION_ATTENTION_H_
