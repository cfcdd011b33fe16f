#ifndef TIERCEL_KERNELS_ATTENTION_ATTENTION_CPU_CELLS_H_
#define TIERCEL_KERNELS_ATTENTION_ATTENTION_CPU_CELLS_H_

// Sets of a page's cells. For op_cpu.cc files only, as simd.h says.

#include "kernels/attention/attention_body.h"
#include "kernels/simd/simd.h"

namespace tiercel::TIERCEL_ISA_NS {

constexpr int kLanes = 16;
constexpr int kGroups = kPageTokens / kLanes;  // groups of 16 cells
constexpr int kAllLanes = (1 << kLanes) - 1;
constexpr int kWordCells = 64;
constexpr int kWords = kPageTokens / kWordCells;

// The first n cells of a word; n may lie outside of it.
TIERCEL_INLINE uint64_t LowCells(int64_t n) {
  return n <= 0 ? 0 : n >= kWordCells ? ~uint64_t{0} : (uint64_t{1} << n) - 1;
}
// Cells first..end - 1; both may lie outside of the page.
TIERCEL_INLINE CellSet CellsBetween(int64_t first, int64_t end) {
  CellSet set;
  for (int i = 0; i < kWords; ++i) {
    set.word[i] =
        LowCells(end - kWordCells * i) & ~LowCells(first - kWordCells * i);
  }
  return set;
}
TIERCEL_INLINE CellSet operator&(const CellSet& a, const CellSet& b) {
  CellSet set;
  for (int i = 0; i < kWords; ++i) set.word[i] = a.word[i] & b.word[i];
  return set;
}
TIERCEL_INLINE CellSet operator|(const CellSet& a, const CellSet& b) {
  CellSet set;
  for (int i = 0; i < kWords; ++i) set.word[i] = a.word[i] | b.word[i];
  return set;
}

TIERCEL_INLINE bool IsIn(const CellSet& set, int cell) {
  return (set.word[cell / kWordCells] >> cell % kWordCells & 1) != 0;
}
// The first cell from `cell` on that is in the set, or kPageTokens.
TIERCEL_INLINE int NextIn(const CellSet& set, int cell) {
  for (int i = cell / kWordCells; i < kWords; ++i) {
    const uint64_t word = set.word[i] & ~LowCells(cell - kWordCells * i);
    if (word != 0) return kWordCells * i + __builtin_ctzll(word);
  }
  return kPageTokens;
}
// The first cell from `cell` on that is not in the set, or kPageTokens.
TIERCEL_INLINE int NextOut(const CellSet& set, int cell) {
  for (int i = cell / kWordCells; i < kWords; ++i) {
    const uint64_t word = ~set.word[i] & ~LowCells(cell - kWordCells * i);
    if (word != 0) return kWordCells * i + __builtin_ctzll(word);
  }
  return kPageTokens;
}
// The cells of a group of 16 that are in the set, one bit each.
TIERCEL_INLINE int LanesOf(const CellSet& set, int group) {
  constexpr int kInWord = kWordCells / kLanes;
  return static_cast<int>(set.word[group / kInWord] >>
                          group % kInWord * kLanes) &
         kAllLanes;
}

TIERCEL_INLINE bool IsWhole(const CellSet& set) {
  uint64_t all = ~uint64_t{0};
  for (int i = 0; i < kWords; ++i) all &= set.word[i];
  return all == ~uint64_t{0};
}

// The cells that row `row` of a block sees.
TIERCEL_INLINE CellSet SeenBy(const AttentionBlock& b, int64_t row) {
  if (b.begin == 0 && b.end + row >= kPageTokens && b.recent + row <= 0) {
    return CellsBetween(0, kPageTokens);
  }
  return CellsBetween(b.begin, b.end + row) &
         (b.fixed | CellsBetween(b.recent + row, kPageTokens));
}
// The union of the cells that row `row` and the rows after it see. Windows move
// by one cell a row, so that they leave no gaps.
TIERCEL_INLINE CellSet SeenFrom(const AttentionBlock& b, int64_t row) {
  return CellsBetween(b.begin, b.end + b.rows - 1) &
         (b.fixed | CellsBetween(b.recent + row, kPageTokens));
}

}  // namespace tiercel::TIERCEL_ISA_NS

#endif  // TIERCEL_KERNELS_ATTENTION_ATTENTION_CPU_CELLS_H_
