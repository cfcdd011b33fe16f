#ifndef TIERCEL_KERNELS_LAYER_PACKED_LAYOUT_H_
#define TIERCEL_KERNELS_LAYER_PACKED_LAYOUT_H_

#include <cstdint>

#include "kernels/number/code_book.h"
#include "kernels/number/dtype.h"

namespace tiercel {

// The bytes of a panel: 16 rows, interleaved in the order of the kernels that
// multiply by them.
//
// F32, F16, BF16: numbers as in the file; kLanes [k][row], kFragments [row][k].
//
// Quantised types: first the codes of all blocks of 32, then all scales. A code
// is unsigned and stands for code - offset. If the type has a book, its 4 bits
// are the place of the code in it. A quad is the codes of four consecutive k of
// one row, a byte each. Both orders take the same number of bytes:
//
//   codes   k2, k4, k6, k8: 2, 4, 6, 8 bits each
//   scales  kD    per block: f16 d of each row
//           kDE   per block: bf16 d, a power of two
//           kDM   per block: f16 d and f16 m
//           kK    per 256: f16 d and f16 -dmin, then per block u8 scale, u8 min
//           kK6   per 256: f16 d, then per 16: int8 scale
//           kKS   per 256: f16 d, then per block: int8 scale
//           kK2   per 256: f16 d and f16 -dmin, then per 16: a byte, whose low
//                 four bits are the scale and whose high four are min
//
//   w = d (code - offset) [+ m], with d = d scale and m = -dmin min for kK and
//   kK2 and d = d scale for kK6 and kKS: every product is exact in float32.
//
// kLanes is for the CPU, whose SIMD lanes are the rows; 64 bytes hold one quad
// of each row:
//
//   codes  k4    [4][64 bytes]: byte = quad 2i | quad 2i+1 << 4
//          k6    [4][64 bytes] the low four bits, like k4, then
//                [2][64 bytes] the high two: quad 4i+f at bits 2f
//          k2    [2][64 bytes], like the high two of k6
//          k8    [8][64 bytes]: a byte is a code
//   scales kD    d[row]; kDE likewise
//          kDM   d[row], m[row]
//          kK    d[row], -dmin[row], then per block scale[row], min[row]
//          kK6   d[row], then per 16 scale[row]
//          kKS   d[row], then per block scale[row]
//          kK2   d[row], -dmin[row], then per 16 the bytes [row]
//
// kFragments is for GPUs, whose matrix unit multiplies a panel by a block in
// one step: lane 4 g + t of a warp gives it four words (MmaS8 of
// device_lang.h), quads t of rows g and g + 8, then quads t + 4 of the same
// rows.
//
//   codes  k4    per two blocks [lane][16 bytes], per block two words: word i
//                has words i and i + 2 at bits 0 and 4; the last of an odd
//                number of blocks [lane][8 bytes]
//          k6    per four blocks two times the low four bits, like k4, then
//                [lane][16 bytes] the high two, a word per block: word i at
//                bits 2i
//          k2    per four blocks [lane][16 bytes], like the high two of k6
//          k8    per block [lane][16 bytes]: the words
//   scales a word, or two, of the rows g and g + 8 together:
//          kD    [g]: d, d; kDE likewise
//          kDM   [g]: d, d, m, m
//          kK    [g]: d, d, -dmin, -dmin, then per block [g]: scale, scale,
//                min, min
//          kK6   [g]: d, d, then per block [g]: both scales of row g, both of
//                row g + 8
//          kK2   [g]: d, d, -dmin, -dmin, then bytes like kK6
//          kKS   [g]: d, d, then per two blocks [g]: both rows' scales of the
//                first, both of the second
//
// A panel is padded to 64 bytes.
enum class PanelOrder { kLanes, kFragments };

inline constexpr int kPanelRows = 16;

enum class CodeLayout { kNone, k2, k4, k6, k8 };
enum class ScaleLayout { kNone, kD, kDE, kDM, kK, kK6, kKS, kK2 };

enum class Book { kNone, kNl4, kFp4 };

struct PackedLayout {
  CodeLayout codes;
  ScaleLayout scales;
  int offset_bits;  // offset = 1 << offset_bits; 0: there is none
  int max_code;     // codes are in [0, max_code]
  Book book = Book::kNone;
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
    case DType::kIQ4_NL:
      return {CodeLayout::k4, ScaleLayout::kD, 7, 241, Book::kNl4};
    case DType::kIQ4_XS:
      return {CodeLayout::k4, ScaleLayout::kKS, 7, 241, Book::kNl4};
    case DType::kMXFP4:
      return {CodeLayout::k4, ScaleLayout::kDE, 4, 28, Book::kFp4};
    case DType::kQ3_K:
      return {CodeLayout::k4, ScaleLayout::kK6, 2, 7};
    case DType::kQ2_K:
      return {CodeLayout::k2, ScaleLayout::kK2, 0, 3};
  }
  return {};
}

constexpr bool IsQuantised(DType type) {
  return LayoutOf(type).codes != CodeLayout::kNone;
}

constexpr int OffsetOf(const PackedLayout& layout) {
  return layout.offset_bits > 0 ? 1 << layout.offset_bits : 0;
}

// The codes of a layout with a book, by their place; of one without a book,
// places are codes.
struct PlacedCodes {
  alignas(16) uint8_t of[16];
};
constexpr PlacedCodes CodesOfBook(const PackedLayout& layout) {
  const CodeBook& book = layout.book == Book::kNl4 ? kNl4Book : kFp4Book;
  PlacedCodes codes = {};
  for (int i = 0; i < 16; ++i) {
    codes.of[i] = static_cast<uint8_t>(book.of[i] + OffsetOf(layout));
  }
  return codes;
}

constexpr bool HasMin(ScaleLayout scales) {
  return scales == ScaleLayout::kDM || scales == ScaleLayout::kK ||
         scales == ScaleLayout::kK2;
}

// Returns true if the halves of a block have their own scales.
constexpr bool HasHalves(ScaleLayout scales) {
  return scales == ScaleLayout::kK6 || scales == ScaleLayout::kK2;
}

// The bytes of the codes of one block of 32, for all rows of the panel.
constexpr int CodeBytes(CodeLayout codes) {
  switch (codes) {
    case CodeLayout::kNone:
      return 0;
    case CodeLayout::k2:
      return 128;
    case CodeLayout::k4:
      return 256;
    case CodeLayout::k6:
      return 384;
    case CodeLayout::k8:
      return 512;
  }
  return 0;
}

// The number of blocks that share a group of scales, and the group's bytes.
constexpr int GroupBlocks(ScaleLayout scales) {
  switch (scales) {
    case ScaleLayout::kK:
    case ScaleLayout::kK6:
    case ScaleLayout::kKS:
    case ScaleLayout::kK2:
      return 8;
    default:
      return 1;
  }
}
constexpr int GroupBytes(ScaleLayout scales) {
  switch (scales) {
    case ScaleLayout::kNone:
      return 0;
    case ScaleLayout::kD:
    case ScaleLayout::kDE:
      return 32;
    case ScaleLayout::kDM:
      return 64;
    case ScaleLayout::kK:
      return 32 + 32 + 8 * 32;
    case ScaleLayout::kK6:
      return 32 + 16 * 16;
    case ScaleLayout::kKS:
      return 32 + 8 * 16;
    case ScaleLayout::kK2:
      return 32 + 32 + 16 * 16;
  }
  return 0;
}

// The following are offsets in kFragments, in words of 4 bytes.
//
// The first word of the codes of lane `lane` in block `block` of `blocks`: four
// words for k8, two otherwise. Those of k2 are at HighFragmentAt.
constexpr int64_t FragmentAt(CodeLayout codes, int64_t blocks, int64_t block,
                             int lane) {
  const bool alone = block % 2 == 0 && block + 1 == blocks;
  switch (codes) {
    case CodeLayout::kNone:
    case CodeLayout::k2:
      return 0;
    case CodeLayout::k4:
      return alone ? block * 64 + lane * 2
                   : block / 2 * 128 + lane * 4 + block % 2 * 2;
    case CodeLayout::k6:
      return block / 4 * 384 + block % 4 / 2 * 128 + lane * 4 + block % 2 * 2;
    case CodeLayout::k8:
      return block * 128 + lane * 4;
  }
  return 0;
}
// The word of k6's high bits, or of k2.
constexpr int64_t HighFragmentAt(CodeLayout codes, int64_t block, int lane) {
  const int low_words = codes == CodeLayout::k6 ? 256 : 0;
  return block / 4 * (low_words + 128) + low_words + lane * 4 + block % 4;
}
// The offsets within a group of scales of the f16 of rows g and g + 8, and of
// the bytes of its block j for these rows.
constexpr int HalfScalesAt(ScaleLayout scales, int g) {
  return HasMin(scales) ? 2 * g : g;
}
constexpr int ByteScalesAt(ScaleLayout scales, int j, int g) {
  const int words = scales == ScaleLayout::kKS ? j / 2 : j;
  return HalfScalesAt(scales, kPanelRows / 2) + 8 * words + g;
}

// Calls body.operator()<type>(), so that the type, which is known at run time,
// becomes a constant in its loops.
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
    case DType::kIQ4_NL:
      return body.template operator()<DType::kIQ4_NL>();
    case DType::kIQ4_XS:
      return body.template operator()<DType::kIQ4_XS>();
    case DType::kMXFP4:
      return body.template operator()<DType::kMXFP4>();
    case DType::kQ3_K:
      return body.template operator()<DType::kQ3_K>();
    case DType::kQ2_K:
      return body.template operator()<DType::kQ2_K>();
  }
  __builtin_unreachable();  // the switch has all types
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_PACKED_LAYOUT_H_
