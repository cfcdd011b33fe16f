#ifndef TIERCEL_KERNELS_KV_KV_LAYOUT_H_
#define TIERCEL_KERNELS_KV_KV_LAYOUT_H_

#include <cstdint>

#include "kernels/number/dtype.h"

namespace tiercel {

// Positions in a page. A page is also the block of attention that is computed
// as a whole and folded in position order (row invariance): one number, because
// a block that crossed pages would tie arithmetic to residency.
inline constexpr int kPageTokens = 128;

// A page begins at a multiple of so many bytes: kernels copy rows of K and V so
// many at a time. Ops refuse others (kernels/kv/page_range.h).
inline constexpr int kPageAlignment = 16;
// So all rows of a head together begin at such a multiple, too, and the next
// page does: whatever a row takes, there are kPageTokens of it.
static_assert(kPageTokens % kPageAlignment == 0);

// Where an element of a page lives (offload/KV_FORMAT.md). A page holds the
// K and V of one layer for positions [i * kPageTokens, (i + 1) * kPageTokens):
//
//   K  [kv_heads][kPageTokens][head_dim] of type_k
//   V  [kv_heads][kPageTokens][head_dim] of type_v
//
// head_dim elements are one row; q8_0 rows are blocks of 32 with an f16 scale.
struct KvLayout {
  DType type_k;  // f32, f16, bf16, q8_0
  DType type_v;  // f32, f16, bf16, q8_0
  int kv_heads;
  int head_dim;

  int64_t KRowBytes() const { return RowBytes(type_k, head_dim); }
  int64_t VRowBytes() const { return RowBytes(type_v, head_dim); }

  // Bytes from the start of the page; cell = position % kPageTokens.
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
