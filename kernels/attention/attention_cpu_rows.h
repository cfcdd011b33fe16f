#ifndef TIERCEL_KERNELS_ATTENTION_ATTENTION_CPU_ROWS_H_
#define TIERCEL_KERNELS_ATTENTION_ATTENTION_CPU_ROWS_H_

// The rows of a page's K and V into registers, whatever their type. For
// op_cpu.cc files only, as simd.h says.

#include "kernels/attention/attention_cpu_slots.h"

namespace tiercel::TIERCEL_ISA_NS {

// How 16 elements of a row are read from element d, a multiple of 16, on; and
// the bytes of the 8 that may be left at the end.
struct F32Source {
  static constexpr int kTailBytes = 32;
  TIERCEL_INLINE F32x16 Read(const std::byte* row, int d) {
    return Load(reinterpret_cast<const float*>(row) + d);
  }
};
struct F16Source {
  static constexpr int kTailBytes = 16;
  TIERCEL_INLINE F32x16 Read(const std::byte* row, int d) {
    return LoadF16(reinterpret_cast<const uint16_t*>(row) + d);
  }
};
struct Bf16Source {
  static constexpr int kTailBytes = 16;
  TIERCEL_INLINE F32x16 Read(const std::byte* row, int d) {
    return LoadBf16(reinterpret_cast<const uint16_t*>(row) + d);
  }
};
// The product of an 11-bit and an 8-bit number is exact.
struct Q8Source {
  static constexpr int kTailBytes = 0;  // rows are whole blocks of 32
  TIERCEL_INLINE F32x16 Read(const std::byte* row, int d) {
    const std::byte* block = row + d / 32 * 34;
    uint16_t scale;
    memcpy(&scale, block, sizeof(scale));
    return Set1F16(scale) *
           LoadI8(reinterpret_cast<const int8_t*>(block + 2 + d % 32));
  }
};

// The same where 8 elements are left; the other lanes are zero.
template <typename Source>
struct TailOf {
  TIERCEL_INLINE F32x16 Read(const std::byte* row, int d) {
    if constexpr (Source::kTailBytes == 0) {
      return Zero();
    } else {
      std::byte padded[2 * Source::kTailBytes] = {};
      memcpy(padded, row + d / 8 * Source::kTailBytes, Source::kTailBytes);
      return Source::Read(padded, 0);
    }
  }
};

// Calls `body` with the source that reads `type`.
template <typename Body>
TIERCEL_INLINE void ForSource(DType type, Body body) {
  switch (type) {
    case DType::kF16:
      return body(F16Source());
    case DType::kBF16:
      return body(Bf16Source());
    case DType::kQ8_0:
      return body(Q8Source());
    default:
      return body(F32Source());
  }
}

TIERCEL_INLINE int Padded(int head_dim) {
  return (head_dim + kLanes - 1) / kLanes * kLanes;
}

// While K is computed on, V comes into the cache, and with V the next block's
// K: a block's bytes lie in two places, which is too short for the hardware to
// see where they go on.
// Asks for `bytes` from p on and returns their end.
TIERCEL_INLINE const std::byte* Prefetch(const std::byte* p, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i, 0, 2);
  return p + bytes;
}

// A group of 16 rows of K. Those that nobody sees may hold anything; one that
// is seen stands in for them.
struct RowGroup {
  const std::byte* row[kLanes];
};
TIERCEL_INLINE RowGroup RowsOf(const AttentionBlock& b, int group, int lanes) {
  RowGroup rows;
  const std::byte* const first = b.k + int64_t{group} * kLanes * b.k_row_bytes;
  if (lanes == kAllLanes) {
    for (int i = 0; i < kLanes; ++i) rows.row[i] = first + i * b.k_row_bytes;
    return rows;
  }
  const int seen = __builtin_ctz(static_cast<unsigned>(lanes));
  for (int i = 0; i < kLanes; ++i) {
    rows.row[i] = first + ((lanes >> i & 1) != 0 ? i : seen) * b.k_row_bytes;
  }
  return rows;
}

// Elements d..d + 15 of 16 rows, transposed: out[i] is element d + i.
template <typename Source>
TIERCEL_INLINE void ReadColumns(const RowGroup& group, int d,
                                F32x16 (&out)[kLanes]) {
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) out[i] = Source::Read(group.row[i], d);
  Transpose(out);
}

// K of the slots that are seen, to [group of 16 slots][padded head_dim][16].
template <typename Source>
void ExpandK(const AttentionBlock& b, const SlotSet& seen, float* out) {
  const int padded = Padded(b.head_dim);
  for (int g = 0; g < kGroups; ++g) {
    const int lanes = LanesOf(seen, g);
    if (lanes == 0) continue;
    const RowGroup group = RowsOf(b, g, lanes);
    Prefetch(b.v + int64_t{g} * kLanes * b.v_row_bytes, kLanes * b.v_row_bytes);
    float* to = out + g * kLanes * padded;
    for (int d = 0; d < padded; d += kLanes) {
      F32x16 column[kLanes];
      if (d + kLanes <= b.head_dim) {
        ReadColumns<Source>(group, d, column);
      } else {
        ReadColumns<TailOf<Source>>(group, d, column);
      }
      for (int i = 0; i < kLanes; ++i) Store(column[i], to + (d + i) * kLanes);
    }
  }
}

// V of the slots that are seen, to [slot][padded head_dim].
template <typename Source>
void ExpandV(const AttentionBlock& b, const SlotSet& seen, float* out) {
  const int padded = Padded(b.head_dim);
  const std::byte* soon = b.next_k;
  for (int slot = NextIn(seen, 0); slot < kPageTokens;
       slot = NextIn(seen, slot)) {
    for (const int end = NextOut(seen, slot); slot < end; ++slot) {
      if (soon != nullptr) soon = Prefetch(soon, b.k_row_bytes);
      const std::byte* row = b.v + slot * b.v_row_bytes;
      float* to = out + slot * padded;
      int d = 0;
      for (; d + kLanes <= b.head_dim; d += kLanes) {
        Store(Source::Read(row, d), to + d);
      }
      if (d < padded) Store(TailOf<Source>::Read(row, d), to + d);
    }
  }
}

}  // namespace tiercel::TIERCEL_ISA_NS

#endif  // TIERCEL_KERNELS_ATTENTION_ATTENTION_CPU_ROWS_H_
