#ifndef TIERCEL_KERNELS_KV_KV_WRITE_H_
#define TIERCEL_KERNELS_KV_KV_WRITE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/device/stream.h"
#include "kernels/kv/kv_layout.h"

namespace tiercel {

// Writes the keys and values of consecutive positions into their pages,
// rounding to the page's types (nearest, ties to even; q8_0: d = max|x| / 127
// in f16, q = round(x / d) with the unrounded d).
struct KvWriteParams {
  const float* k;    // [rows, k_stride], a row is [kv_heads, head_dim]
  const float* v;    // [rows, v_stride], a row is [kv_heads, head_dim]
  int64_t k_stride;  // floats from one row to the next
  int64_t v_stride;
  int64_t rows;

  KvLayout layout;
  std::byte* const* pages;  // page i holds positions from i * kPageTokens on
  int64_t first_page;       // the page index of pages[0]
  int64_t num_pages;
  int64_t position;  // absolute position of row 0; all rows within the pages
};
absl::Status KvWrite(Stream& stream, const KvWriteParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_KV_WRITE_H_
