#ifndef TIERCEL_KERNELS_LAYER_PACKED_LAYOUT_H_
#define TIERCEL_KERNELS_LAYER_PACKED_LAYOUT_H_

#include <cstdint>

#include "kernels/number/dtype.h"

namespace tiercel {

// The bytes of a panel: 16 rows, interleaved. "Lane" is the row in the panel.
//
// F32, F16, BF16: [k][lane], as in the file.
//
// Quantised types: first the codes of all blocks of 32, then all scales. A code
// is unsigned and stands for code - offset. A quad is the codes of four
// consecutive k of one lane, a byte each; 64 bytes hold one quad of each lane.
//
//   codes  k4    [4][64 bytes]: byte = quad 2i | quad 2i+1 << 4
//          k6    [4][64 bytes] the low four bits, like k4, then
//                [2][64 bytes] the high two: quad 4i+f at bits 2f
//          k8    [8][64 bytes]: a byte is a code
//   scales kD    per block: f16 d[lane]
//          kDM   per block: f16 d[lane], f16 m[lane]
//          kK    per 256: f16 d[lane], f16 -dmin[lane], then per block
//                u8 scale[lane], u8 min[lane]
//          kK6   per 256: f16 d[lane], then per 16: int8 scale[lane]
//
//   w = d (code - offset) [+ m], with d = d scale and m = -dmin min for kK and
//   d = d scale for kK6: every product is exact in float32.
//
// A panel is padded to 64 bytes.
inline constexpr int kPanelRows = 16;

enum class CodeLayout { kNone, k4, k6, k8 };
enum class ScaleLayout { kNone, kD, kDM, kK, kK6 };

struct PackedLayout {
  CodeLayout codes;
  ScaleLayout scales;
  int offset_bits;  // offset = 1 << offset_bits; 0: there is none
  int max_code;     // codes are in [0, max_code]
};

constexpr PackedLayout LayoutOf(DType type) {
  switch (type) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
      return {CodeLayout::kNone, ScaleLayout::kNone, 0, 0};
    case DType::kQ8_0:
      return {CodeLayout::k8, ScaleLayout::kD, 7, 255};
    case DType::kQ4_0:
      return {CodeLayout::k4, ScaleLayout::kD, 3, 15};
    case DType::kQ4_1:
      return {CodeLayout::k4, ScaleLayout::kDM, 0, 15};
    case DType::kQ5_0:
      return {CodeLayout::k8, ScaleLayout::kD, 4, 31};
    case DType::kQ5_1:
      return {CodeLayout::k8, ScaleLayout::kDM, 0, 31};
    case DType::kQ4_K:
      return {CodeLayout::k4, ScaleLayout::kK, 0, 15};
    case DType::kQ5_K:
      return {CodeLayout::k8, ScaleLayout::kK, 0, 31};
    case DType::kQ6_K:
      return {CodeLayout::k6, ScaleLayout::kK6, 5, 63};
  }
  return {};
}

constexpr bool IsQuantised(DType type) {
  return LayoutOf(type).codes != CodeLayout::kNone;
}

constexpr bool HasMin(ScaleLayout scales) {
  return scales == ScaleLayout::kDM || scales == ScaleLayout::kK;
}

// Bytes of the codes of one block of 32, all lanes.
constexpr int CodeBytes(CodeLayout codes) {
  switch (codes) {
    case CodeLayout::kNone:
      return 0;
    case CodeLayout::k4:
      return 256;
    case CodeLayout::k6:
      return 384;
    case CodeLayout::k8:
      return 512;
  }
  return 0;
}

// Blocks that share a group of scales, and the group's bytes.
constexpr int GroupBlocks(ScaleLayout scales) {
  return scales == ScaleLayout::kK || scales == ScaleLayout::kK6 ? 8 : 1;
}
constexpr int GroupBytes(ScaleLayout scales) {
  switch (scales) {
    case ScaleLayout::kNone:
      return 0;
    case ScaleLayout::kD:
      return 32;
    case ScaleLayout::kDM:
      return 64;
    case ScaleLayout::kK:
      return 32 + 32 + 8 * 32;
    case ScaleLayout::kK6:
      return 32 + 16 * 16;
  }
  return 0;
}

// Calls body.operator()<type>(): what is decided once per product at run time
// becomes a constant of its loops.
template <typename Body>
[[gnu::always_inline]] inline auto WithWeightType(DType type,
                                                  const Body& body) {
  switch (type) {
    case DType::kF32:
      return body.template operator()<DType::kF32>();
    case DType::kF16:
      return body.template operator()<DType::kF16>();
    case DType::kBF16:
      return body.template operator()<DType::kBF16>();
    case DType::kQ8_0:
      return body.template operator()<DType::kQ8_0>();
    case DType::kQ4_0:
      return body.template operator()<DType::kQ4_0>();
    case DType::kQ4_1:
      return body.template operator()<DType::kQ4_1>();
    case DType::kQ5_0:
      return body.template operator()<DType::kQ5_0>();
    case DType::kQ5_1:
      return body.template operator()<DType::kQ5_1>();
    case DType::kQ4_K:
      return body.template operator()<DType::kQ4_K>();
    case DType::kQ5_K:
      return body.template operator()<DType::kQ5_K>();
    case DType::kQ6_K:
      return body.template operator()<DType::kQ6_K>();
  }
  __builtin_unreachable();  // those are all
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_PACKED_LAYOUT_H_
