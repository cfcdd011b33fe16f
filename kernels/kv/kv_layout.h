#ifndef TIERCEL_KERNELS_KV_KV_LAYOUT_H_
#define TIERCEL_KERNELS_KV_KV_LAYOUT_H_

#include <cmath>
#include <cstdint>

#include "kernels/number/dtype.h"

namespace tiercel {

// The positions of a page. A page is also the block that attention computes as
// a whole and folds in the order of positions (row invariance). Both are the
// same number, so that arithmetic does not depend on where pages are.
inline constexpr int kPageTokens = 128;

// A page begins at a multiple of this many bytes, which kernels copy at a time.
// Ops refuse other pages (kernels/kv/page_range.h).
inline constexpr int kPageAlignment = 16;
// So the kPageTokens rows of each head begin at such a multiple, too, whatever
// the size of a row, and so does the next page.
static_assert(kPageTokens % kPageAlignment == 0);

// The layout of a page (offload/KV_FORMAT.md). A page holds the K and V of one
// layer for positions [i * kPageTokens, (i + 1) * kPageTokens):
//
//   K  [kv_heads][kPageTokens][head_dim] of type_k
//   V  [kv_heads][kPageTokens][head_dim] of type_v
//
// head_dim elements are one row; q8_0 and q4_0 rows are blocks of 32 with an
// f16 scale.
struct KvLayout {
  DType type_k;  // f32, f16, bf16, q8_0, q4_0
  DType type_v;  // likewise
  int kv_heads;
  int head_dim;
  int head_elements = 0;         // the others are zeros; 0: all
  float attention_scale = 0.0f;  // 0: 1 / sqrt(the head's elements)

  // The factor on the products of queries and keys.
  float AttentionScale() const {
    if (attention_scale > 0) return attention_scale;
    return 1.0f / std::sqrt(static_cast<float>(head_elements > 0 ? head_elements
                                                                 : head_dim));
  }

  int64_t KRowBytes() const { return RowBytes(type_k, head_dim); }
  int64_t VRowBytes() const { return RowBytes(type_v, head_dim); }

  // Offsets in bytes from the start of the page; cell = position % kPageTokens.
  int64_t KOffset(int head, int cell) const {
    return (static_cast<int64_t>(head) * kPageTokens + cell) * KRowBytes();
  }
  int64_t VOffset(int head, int cell) const {
    return kv_heads * kPageTokens * KRowBytes() +
           (static_cast<int64_t>(head) * kPageTokens + cell) * VRowBytes();
  }
  int64_t PageBytes() const {
    return kv_heads * kPageTokens * (KRowBytes() + VRowBytes());
  }
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_KV_LAYOUT_H_
