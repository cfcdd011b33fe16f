#ifndef TIERCEL_KERNELS_LAYER_MATMUL_CPU_WEIGHTS_H_
#define TIERCEL_KERNELS_LAYER_MATMUL_CPU_WEIGHTS_H_

// Loads packed weights into registers (packed_layout.h has the layout). For
// op_cpu.cc files only, as simd.h says.

#include "kernels/layer/packed_layout.h"
#include "kernels/simd/simd_int.h"

namespace tiercel::TIERCEL_ISA_NS {

// Quad j (0 to 3) of half a block's codes, all lanes; if there is a book, of
// their places in it. j must be a constant once loops are unrolled.
template <CodeLayout kCodes>
TIERCEL_INLINE U8x64 PackedQuad(const uint8_t* block, int half, int j) {
  if constexpr (kCodes == CodeLayout::k8) {
    return Load64(block + 64 * (4 * half + j));
  } else if constexpr (kCodes == CodeLayout::k2) {
    const U8x64 quads = Load64(block + 64 * half);
    switch (j) {
      case 0:
        return ShiftMask<0>(quads, 3);
      case 1:
        return ShiftMask<-2>(quads, 3);
      case 2:
        return ShiftMask<-4>(quads, 3);
      default:
        return ShiftMask<-6>(quads, 3);
    }
  } else {
    const U8x64 pair = Load64(block + 64 * (2 * half + j / 2));
    const U8x64 low =
        j % 2 == 0 ? ShiftMask<0>(pair, 15) : ShiftMask<-4>(pair, 15);
    if constexpr (kCodes == CodeLayout::k4) return low;
    const U8x64 high = Load64(block + 256 + 64 * half);
    switch (j) {
      case 0:
        return low | ShiftMask<4>(high, 0x30);
      case 1:
        return low | ShiftMask<2>(high, 0x30);
      case 2:
        return low | ShiftMask<0>(high, 0x30);
      default:
        return low | ShiftMask<-2>(high, 0x30);
    }
  }
}

template <PackedLayout kLayout>
TIERCEL_INLINE U8x64 CodeQuad(const uint8_t* block, int half, int j) {
  const U8x64 quad = PackedQuad<kLayout.codes>(block, half, j);
  if constexpr (kLayout.book == Book::kNone) return quad;
  static constexpr PlacedCodes kCodes = CodesOfBook(kLayout);
  return LookUp(kCodes.of, quad);
}

// Part `part` (PartsOf) of quad 0 to 7 of a block's codes, all lanes.
template <PackedLayout kLayout>
TIERCEL_INLINE U8x64 PartQuad(const uint8_t* block, int part, int quad) {
  const U8x64 codes = CodeQuad<kLayout>(block, quad / 4, quad % 4);
  if constexpr (PartsOf(kLayout.max_code) == 1) return codes;
  return part == 0 ? ShiftMask<0>(codes, 15) : ShiftMask<-4>(codes, 15);
}

// Scales of a block, all lanes.
struct BlockScales {
  F32x16 d;
  F32x16 m;                  // minimum, if the layout has one
  I32x16 half_mins[2] = {};  // factors of m for kK2's halves
};

// The bytes of half a block, if halves have their own scales.
template <ScaleLayout kScales>
TIERCEL_INLINE const uint8_t* HalfBytes(const uint8_t* scales, int64_t block,
                                        int half) {
  const uint8_t* group = scales + block / 8 * GroupBytes(kScales);
  constexpr int kFirst = HasMin(kScales) ? 64 : 32;
  return group + kFirst + (block % 8 * 2 + half) * 16;
}
template <ScaleLayout kScales>
TIERCEL_INLINE I32x16 HalfScale(const uint8_t* scales, int64_t block,
                                int half) {
  const uint8_t* bytes = HalfBytes<kScales>(scales, block, half);
  if constexpr (kScales == ScaleLayout::kK2) return LoadU4(bytes, false);
  return LoadI8AsI32(reinterpret_cast<const int8_t*>(bytes));
}
// kK2's minimum of half a block.
TIERCEL_INLINE I32x16 HalfMin(const uint8_t* scales, int64_t block, int half) {
  return LoadU4(HalfBytes<ScaleLayout::kK2>(scales, block, half), true);
}

template <ScaleLayout kScales>
TIERCEL_INLINE BlockScales LoadScales(const uint8_t* scales, int64_t block) {
  if constexpr (kScales == ScaleLayout::kD) {
    return {LoadF16(reinterpret_cast<const uint16_t*>(scales + block * 32)),
            Zero()};
  } else if constexpr (kScales == ScaleLayout::kDE) {
    return {LoadBf16(reinterpret_cast<const uint16_t*>(scales + block * 32)),
            Zero()};
  } else if constexpr (kScales == ScaleLayout::kDM) {
    const uint16_t* dm = reinterpret_cast<const uint16_t*>(scales + block * 64);
    return {LoadF16(dm), LoadF16(dm + 16)};
  } else {
    const uint8_t* group = scales + block / 8 * GroupBytes(kScales);
    const uint16_t* dm = reinterpret_cast<const uint16_t*>(group);
    if constexpr (kScales == ScaleLayout::kK6) return {LoadF16(dm), Zero()};
    if constexpr (kScales == ScaleLayout::kK2) {
      return {LoadF16(dm),
              LoadF16(dm + 16),
              {HalfMin(scales, block, 0), HalfMin(scales, block, 1)}};
    }
    if constexpr (kScales == ScaleLayout::kKS) {
      const uint8_t* scale = group + 32 + block % 8 * 16;
      return {LoadF16(dm) * LoadI8(reinterpret_cast<const int8_t*>(scale)),
              Zero()};
    }
    const uint8_t* six_bits = group + 64 + block % 8 * 32;
    return {LoadF16(dm) * LoadU8(six_bits),
            LoadF16(dm + 16) * LoadU8(six_bits + 16)};
  }
}

// The weights of half a block as floats: w[i] is column i of 16, all lanes. The
// bits are those of Dequantize.
template <DType kType>
TIERCEL_INLINE void HalfBlockWeights(const uint8_t* codes,
                                     const uint8_t* scales, int64_t block,
                                     int half, F32x16 w[16]) {
  constexpr PackedLayout kLayout = LayoutOf(kType);
  constexpr bool kHasMin = HasMin(kLayout.scales);
  constexpr int kOffset = OffsetOf(kLayout);
  BlockScales s = LoadScales<kLayout.scales>(scales, block);
  if constexpr (HasHalves(kLayout.scales)) {
    s.d = s.d * ToF32(HalfScale<kLayout.scales>(scales, block, half));
  }
  if constexpr (kLayout.scales == ScaleLayout::kK2) {
    s.m = s.m * ToF32(HalfMin(scales, block, half));
  }
  const uint8_t* block_codes = codes + block * CodeBytes(kLayout.codes);
  const auto weight = [&](I32x16 code) __attribute__((always_inline)) {
    if constexpr (kHasMin) return Fma(ToF32(code), s.d, s.m);
    return ToF32(code - SetI32(kOffset)) * s.d;  // NOLINT: LoadScales fills it
  };
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const U8x64 quad = CodeQuad<kLayout>(block_codes, half, j);
    w[4 * j] = weight(ByteOf<0>(quad));
    w[4 * j + 1] = weight(ByteOf<1>(quad));
    w[4 * j + 2] = weight(ByteOf<2>(quad));
    w[4 * j + 3] = weight(ByteOf<3>(quad));
  }
}

// The 16 lanes at column k of a panel of floats.
template <DType kType>
TIERCEL_INLINE F32x16 ColumnOf(const uint8_t* panel, int64_t k) {
  if constexpr (kType == DType::kF32) {
    return Load(reinterpret_cast<const float*>(panel) + k * 16);
  } else if constexpr (kType == DType::kF16) {
    return LoadF16(reinterpret_cast<const uint16_t*>(panel) + k * 16);
  } else {
    return LoadBf16(reinterpret_cast<const uint16_t*>(panel) + k * 16);
  }
}

}  // namespace tiercel::TIERCEL_ISA_NS

#endif  // TIERCEL_KERNELS_LAYER_MATMUL_CPU_WEIGHTS_H_
