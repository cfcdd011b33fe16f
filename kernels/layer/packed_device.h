#ifndef TIERCEL_KERNELS_LAYER_PACKED_DEVICE_H_
#define TIERCEL_KERNELS_LAYER_PACKED_DEVICE_H_

// Functions by which kernels read packed weights; packed_layout.h has the
// layout.

#include "kernels/device/device_lang.h"
#include "kernels/layer/packed_layout.h"
#include "kernels/number/half.h"

namespace tiercel {

// The blocks of a panel of quantised weights, in fragments.
template <DType kType>
struct PackedBlocks {
  static constexpr PackedLayout kLayout = LayoutOf(kType);
  static constexpr int kGroup = GroupBlocks(kLayout.scales);
  static constexpr int kCodeWords = CodeBytes(kLayout.codes) / 4;
  static constexpr int kGroupWords = GroupBytes(kLayout.scales) / 4;
  static constexpr bool kHasHalves = HasHalves(kLayout.scales);
  static constexpr bool kHasHalfMins = kLayout.scales == ScaleLayout::kK2;
  static constexpr int kOffset = OffsetOf(kLayout);

  struct Scales {
    float d;
    float m;           // minimum, if the type has one
    int of_halves[2];  // scales of halves, if they have any; else 1
    int of_mins[2];    // minimums of kK2's halves
  };

  // The codes of lane `lane` of a warp in blocks 2 pair and 2 pair + 1, as they
  // are in memory.
  struct PairWords {
    Packet<uint32_t> low[kLayout.codes == CodeLayout::k8 ? 2 : 1];
    uint32_t high[2];  // used by k6 and k2
  };
  // The codes of block 2 pair + 1 are zeros if it is not below `blocks`.
  static TIERCEL_DEVICE PairWords LoadPair(const uint32_t* codes,
                                           int64_t blocks, int64_t pair,
                                           int lane) {
    const uint32_t* from =
        codes + FragmentAt(kLayout.codes, blocks, 2 * pair, lane);
    const bool both = 2 * pair + 1 < blocks;
    PairWords words = {};
    if constexpr (kLayout.codes == CodeLayout::k8) {
      words.low[0] = Load16(from);
      if (both) words.low[1] = Load16(from + kCodeWords);
    } else if constexpr (kLayout.codes != CodeLayout::k2) {
      if (both) {
        words.low[0] = Load16(from);
      } else {
        for (int i = 0; i < 2; ++i) words.low[0][i] = from[i];
      }
    }
    if constexpr (kHasHigh) {
      for (int b = 0; b < 2; ++b) {
        words.high[b] =
            codes[HighFragmentAt(kLayout.codes, 2 * pair + b, lane)];
      }
    }
    return words;
  }
  // Word i of the four that block b of the pair gives the matrix unit.
  static TIERCEL_DEVICE uint32_t PairWord(const PairWords& words, int b,
                                          int i) {
    if constexpr (kLayout.codes == CodeLayout::k8) return words.low[b][i];
    return WordOf(words.low[0][2 * b + i % 2], words.high[b], i);
  }

  // Reads quad `quad` of a block for one row of the panel.
  static TIERCEL_DEVICE uint32_t ReadQuad(const uint32_t* codes, int64_t blocks,
                                          int64_t block, int row, int quad) {
    const int lane = row % 8 * 4 + quad % 4;
    const int i = row / 8 + quad / 4 * 2;
    const uint32_t* from =
        codes + FragmentAt(kLayout.codes, blocks, block, lane);
    if constexpr (kLayout.codes == CodeLayout::k8) return from[i];
    uint32_t high = 0;
    if constexpr (kHasHigh) {
      high = codes[HighFragmentAt(kLayout.codes, block, lane)];
    }
    if constexpr (kLayout.codes == CodeLayout::k2) return WordOf(0, high, i);
    return WordOf(from[i % 2], high, i);
  }

  // Extracts the words of block i of four. A lane has the four blocks in
  // packets, each 512 bytes after the one before.
  static constexpr int kQuadPackets = kCodeWords / 32;
  static TIERCEL_DEVICE void WordsOf(
      const Packet<uint32_t> (&packets)[kQuadPackets], int i,
      uint32_t (&words)[4]) {
    for (int j = 0; j < 4; ++j) {
      if constexpr (kLayout.codes == CodeLayout::k8) {
        words[j] = packets[i][j];
      } else {
        const uint32_t high = kHasHigh ? packets[kQuadPackets - 1][i] : 0;
        if constexpr (kLayout.codes == CodeLayout::k2) {
          words[j] = WordOf(0, high, j);
        } else {
          words[j] = WordOf(packets[i / 2][i % 2 * 2 + j % 2], high, j);
        }
      }
    }
  }

  // The scales of a block for rows g and g + 8, as they are in memory.
  struct ScaleWords {
    uint32_t halves;
    uint32_t min_halves;  // used if the type has a minimum
    uint32_t bytes;       // used if blocks share a group
  };
  static TIERCEL_DEVICE ScaleWords ReadScaleWords(const uint32_t* groups,
                                                  int64_t block, int g) {
    const uint32_t* group = groups + block / kGroup * kGroupWords;
    const uint32_t* halves = group + HalfScalesAt(kLayout.scales, g);
    ScaleWords words = {halves[0], 0, 0};
    if constexpr (HasMin(kLayout.scales)) words.min_halves = halves[1];
    if constexpr (kGroup > 1) {
      words.bytes = group[ByteScalesAt(kLayout.scales,
                                       static_cast<int>(block % kGroup), g)];
      if constexpr (kLayout.scales == ScaleLayout::kKS) {
        words.bytes >>= block % 2 * 16;
      }
    }
    return words;
  }
  static TIERCEL_DEVICE void ReadScales(const uint32_t* groups, int64_t block,
                                        int g, Scales (&s)[2]) {
    ScalesOf(ReadScaleWords(groups, block, g), s);
  }
  static TIERCEL_DEVICE void ScalesOf(const ScaleWords& words, Scales (&s)[2]) {
    for (int h = 0; h < 2; ++h) {
      s[h] = {HalfOf(words.halves, h), 0.0f, {1, 1}, {1, 1}};
      if constexpr (HasMin(kLayout.scales)) {
        s[h].m = HalfOf(words.min_halves, h);
      }
    }
    if constexpr (kGroup > 1) {
      const uint32_t bytes = words.bytes;
      for (int h = 0; h < 2; ++h) {
        if constexpr (kHasHalfMins) {
          for (int half = 0; half < 2; ++half) {
            const uint32_t byte = bytes >> (16 * h + 8 * half) & 0xffu;
            s[h].of_halves[half] = static_cast<int>(byte & 15u);
            s[h].of_mins[half] = static_cast<int>(byte >> 4);
          }
        } else if constexpr (kHasHalves) {
          s[h].of_halves[0] = static_cast<int8_t>(bytes >> (16 * h));
          s[h].of_halves[1] = static_cast<int8_t>(bytes >> (16 * h + 8));
        } else if constexpr (kLayout.scales == ScaleLayout::kKS) {
          s[h].d *= static_cast<float>(static_cast<int8_t>(bytes >> (8 * h)));
        } else {
          s[h].d *= static_cast<float>(bytes >> (8 * h) & 0xffu);
          s[h].m *= static_cast<float>(bytes >> (16 + 8 * h) & 0xffu);
        }
      }
    }
  }
  static TIERCEL_DEVICE Scales ReadScales(const uint32_t* groups, int64_t block,
                                          int row) {
    Scales s[2];
    ReadScales(groups, block, row % 8, s);
    return row < 8 ? s[0] : s[1];
  }

  // Weight i of block `block` of row `row`.
  static TIERCEL_DEVICE float Get(const uint8_t* panel, int64_t blocks,
                                  int64_t block, int row, int i) {
    const auto* codes = reinterpret_cast<const uint32_t*>(panel);
    return Get(ReadScales(codes + blocks * kCodeWords, block, row),
               ReadQuad(codes, blocks, block, row, i / 4), i);
  }
  // Weight i of the block that has these scales; `quad` is the quad of i.
  static TIERCEL_DEVICE float Get(const Scales& s, uint32_t quad, int i) {
    // Registers must be indexed by constants.
    const int of_half = i < 16 ? s.of_halves[0] : s.of_halves[1];
    const int code = static_cast<int>(quad >> (i % 4 * 8) & 0xffu);
    const float w =
        s.d * static_cast<float>(of_half) * static_cast<float>(code - kOffset);
    return HasMin(kLayout.scales) ? w + MinOf(s, i / 16) : w;
  }
  // The minimum of half a block.
  static TIERCEL_DEVICE float MinOf(const Scales& s, int half) {
    if constexpr (!kHasHalfMins) return s.m;
    return s.m * static_cast<float>(half == 0 ? s.of_mins[0] : s.of_mins[1]);
  }
  // The factor of m and of x's scale in a product, if halves of x's codes have
  // these sums.
  static TIERCEL_DEVICE int MinSum(const Scales& s, int low, int high) {
    if constexpr (!kHasHalfMins) return low + high;
    return low * s.of_mins[0] + high * s.of_mins[1];
  }

 private:
  static constexpr bool kHasHigh =
      kLayout.codes == CodeLayout::k6 || kLayout.codes == CodeLayout::k2;

  // Word i of four; `low` has the low four bits, `high` those above.
  static TIERCEL_DEVICE uint32_t WordOf(uint32_t low, uint32_t high, int i) {
    if constexpr (kLayout.codes == CodeLayout::k2) {
      return high >> (2 * i) & 0x03030303u;
    }
    if constexpr (kLayout.book != Book::kNone) return LookUp(low, i);
    const uint32_t four = low >> (i / 2 * 4) & 0x0f0f0f0fu;
    if constexpr (kLayout.codes != CodeLayout::k6) return four;
    return four | (high >> (2 * i) & 0x03030303u) << 4;
  }
  // Word i of the codes whose places in the book are at `low`. Words i and i +
  // 2 differ by the last permutation alone, so a compiler computes the rest
  // once.
  static TIERCEL_DEVICE uint32_t LookUp(uint32_t low, int i) {
    constexpr uint32_t kBook[] = {BookWord(0), BookWord(1), BookWord(2),
                                  BookWord(3)};
    uint32_t codes[2];
    for (int half = 0; half < 2; ++half) {
      // The low three bits of a place choose in each half of the book, the
      // fourth chooses between the halves.
      const uint32_t places = low >> (16 * half);
      codes[half] =
          BytePermute(BytePermute(kBook[0], kBook[1], places & 0x7777u),
                      BytePermute(kBook[2], kBook[3], places & 0x7777u),
                      0x3210u | (places >> 1 & 0x4444u));
    }
    return BytePermute(codes[0], codes[1], i < 2 ? 0x6420u : 0x7531u);
  }
  // Codes 4 i to 4 i + 3 of the book.
  static constexpr uint32_t BookWord(int i) {
    const PlacedCodes codes = CodesOfBook(kLayout);
    uint32_t word = 0;
    for (int j = 3; j >= 0; --j) word = word << 8 | codes.of[4 * i + j];
    return word;
  }
  static TIERCEL_DEVICE float HalfOf(uint32_t two, int h) {
    const auto bits = static_cast<uint16_t>(two >> (16 * h));
    return kLayout.scales == ScaleLayout::kDE ? F32FromBf16(bits)
                                              : F32FromF16(bits);
  }
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_PACKED_DEVICE_H_
