#ifndef TIERCEL_KERNELS_KV_KV_LANES_H_
#define TIERCEL_KERNELS_KV_KV_LANES_H_

// Reads rows of K and V of any type into registers. For op_cpu.cc files only,
// as simd.h says.

#include <cstddef>

#include "kernels/number/dtype.h"
#include "kernels/simd/simd.h"

namespace tiercel::TIERCEL_ISA_NS {

// Each source reads 16 elements of a row from element d on, a multiple of 16.
// kBlockBytes is the size of 32 elements that share a scale, or 0.
// kTailBytes is the size of 8 elements that may be left at the end of a row, or
// 0 if none can be left.
struct F32Source {
  static constexpr int kBlockBytes = 0;
  static constexpr int kTailBytes = 32;
  TIERCEL_INLINE F32x16 Read(const std::byte* row, int d) {
    return Load(reinterpret_cast<const float*>(row) + d);
  }
};
struct F16Source {
  static constexpr int kBlockBytes = 0;
  static constexpr int kTailBytes = 16;
  TIERCEL_INLINE F32x16 Read(const std::byte* row, int d) {
    return LoadF16(reinterpret_cast<const uint16_t*>(row) + d);
  }
};
struct Bf16Source {
  static constexpr int kBlockBytes = 0;
  static constexpr int kTailBytes = 16;
  TIERCEL_INLINE F32x16 Read(const std::byte* row, int d) {
    return LoadBf16(reinterpret_cast<const uint16_t*>(row) + d);
  }
};
// A block of 32 is an f16 scale and its codes. Source::Bytes are the 16 bytes
// that have those of elements d..d + 15, and Source::Codes extracts them. The
// product with the scale is exact, as one has 11 bits and the other 8.
template <typename Source>
struct BlockSource {
  static constexpr int kTailBytes = 0;  // rows are whole blocks
  TIERCEL_INLINE F32x16 Read(const std::byte* row, int d) {
    const std::byte* block = row + d / 32 * Source::kBlockBytes;
    uint16_t scale;
    memcpy(&scale, block, sizeof(scale));
    return Set1F16(scale) * Source::Codes(Source::Bytes(block, d), d);
  }
};
struct Q8Source : BlockSource<Q8Source> {
  static constexpr int kBlockBytes = 34;
  TIERCEL_INLINE const std::byte* Bytes(const std::byte* block, int d) {
    return block + 2 + d % 32;
  }
  TIERCEL_INLINE F32x16 Codes(const std::byte* bytes, int) {
    return LoadI8(reinterpret_cast<const int8_t*>(bytes));
  }
};
struct Q4Source : BlockSource<Q4Source> {
  static constexpr int kBlockBytes = 18;
  TIERCEL_INLINE const std::byte* Bytes(const std::byte* block, int) {
    return block + 2;
  }
  TIERCEL_INLINE F32x16 Codes(const std::byte* bytes, int d) {
    return LoadI4(reinterpret_cast<const uint8_t*>(bytes), d % 32 != 0);
  }
};

// Reads the last 8 elements of a row; the other lanes are zero.
template <typename Source>
struct TailOf {
  static constexpr int kBlockBytes = 0;
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

// Reads elements d..d + 15 of 16 rows in blocks, and transposes them as bytes.
template <typename Source>
TIERCEL_INLINE void ReadBlockColumns(const std::byte* const (&row)[16], int d,
                                     F32x16 (&out)[16]) {
  uint16_t halves[16];
  const std::byte* codes[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    const std::byte* const block = row[i] + d / 32 * Source::kBlockBytes;
    memcpy(halves + i, block, sizeof(halves[i]));
    codes[i] = Source::Bytes(block, d);
  }
  const F32x16 scales = LoadF16(halves);
  int8_t columns[16][16];
  TransposeBytes(codes, columns);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    out[i] = scales *
             Source::Codes(reinterpret_cast<const std::byte*>(columns[i]), d);
  }
}

// Reads elements d..d + 15 of 16 rows and transposes them: out[i] has element
// d + i of each row.
template <typename Source>
TIERCEL_INLINE void ReadColumns(const std::byte* const (&row)[16], int d,
                                F32x16 (&out)[16]) {
  if constexpr (Source::kBlockBytes > 0) {
    ReadBlockColumns<Source>(row, d, out);
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
    case DType::kQ4_0:
      return body(Q4Source());
    default:
      return body(F32Source());
  }
}

}  // namespace tiercel::TIERCEL_ISA_NS

#endif  // TIERCEL_KERNELS_KV_KV_LANES_H_
