#ifndef TIERCEL_KERNELS_KV_KV_LANES_H_
#define TIERCEL_KERNELS_KV_KV_LANES_H_

// Reads rows of K and V of any type into registers. For op_cpu.cc files only,
// as simd.h says.

#include <cstddef>

#include "kernels/number/dtype.h"
#include "kernels/simd/simd.h"

namespace tiercel::TIERCEL_ISA_NS {

// Each source reads 16 elements of a row from element d on, a multiple of 16.
// kTailBytes is the size of 8 elements that may be left at the end of a row, or
// 0 if none can be left.
struct F32Source {
  static constexpr bool kIsQ8 = false;
  static constexpr int kTailBytes = 32;
  TIERCEL_INLINE F32x16 Read(const std::byte* row, int d) {
    return Load(reinterpret_cast<const float*>(row) + d);
  }
};
struct F16Source {
  static constexpr bool kIsQ8 = false;
  static constexpr int kTailBytes = 16;
  TIERCEL_INLINE F32x16 Read(const std::byte* row, int d) {
    return LoadF16(reinterpret_cast<const uint16_t*>(row) + d);
  }
};
struct Bf16Source {
  static constexpr bool kIsQ8 = false;
  static constexpr int kTailBytes = 16;
  TIERCEL_INLINE F32x16 Read(const std::byte* row, int d) {
    return LoadBf16(reinterpret_cast<const uint16_t*>(row) + d);
  }
};
// The product of an 11-bit and an 8-bit number is exact.
struct Q8Source {
  static constexpr bool kIsQ8 = true;
  static constexpr int kTailBytes = 0;  // rows are whole blocks of 32
  TIERCEL_INLINE F32x16 Read(const std::byte* row, int d) {
    const std::byte* block = row + d / 32 * 34;
    uint16_t scale;
    memcpy(&scale, block, sizeof(scale));
    return Set1F16(scale) *
           LoadI8(reinterpret_cast<const int8_t*>(block + 2 + d % 32));
  }
};

// Reads the last 8 elements of a row; the other lanes are zero.
template <typename Source>
struct TailOf {
  static constexpr bool kIsQ8 = false;
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

// Reads elements d..d + 15 of 16 rows of q8_0, and transposes them as bytes.
TIERCEL_INLINE void ReadQ8Columns(const std::byte* const (&row)[16], int d,
                                  F32x16 (&out)[16]) {
  uint16_t halves[16];
  const std::byte* codes[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    const std::byte* const block = row[i] + d / 32 * 34;
    memcpy(halves + i, block, sizeof(halves[i]));
    codes[i] = block + 2 + d % 32;
  }
  const F32x16 scales = LoadF16(halves);
  int8_t columns[16][16];
  TransposeBytes(codes, columns);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) out[i] = scales * LoadI8(columns[i]);
}

// Reads elements d..d + 15 of 16 rows and transposes them: out[i] has element
// d + i of each row.
template <typename Source>
TIERCEL_INLINE void ReadColumns(const std::byte* const (&row)[16], int d,
                                F32x16 (&out)[16]) {
  if constexpr (Source::kIsQ8) {
    ReadQ8Columns(row, d, out);
  } else {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) out[i] = Source::Read(row[i], d);
    Transpose(out);
  }
}

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

}  // namespace tiercel::TIERCEL_ISA_NS

#endif  // TIERCEL_KERNELS_KV_KV_LANES_H_
