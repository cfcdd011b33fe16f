#ifndef TIERCEL_KERNELS_ATTENTION_ATTENTION_CPU_SLOTS_H_
#define TIERCEL_KERNELS_ATTENTION_ATTENTION_CPU_SLOTS_H_

// Sets of a page's slots. For op_cpu.cc files only, as simd.h says.

#include "kernels/attention/attention_body.h"
#include "kernels/simd/simd.h"

namespace tiercel::TIERCEL_ISA_NS {

constexpr int kLanes = 16;
constexpr int kGroups = kPageTokens / kLanes;  // of 16 slots
constexpr int kAllLanes = (1 << kLanes) - 1;
constexpr int kWordSlots = 64;
constexpr int kWords = kPageTokens / kWordSlots;

// The first n slots of a word; n may lie outside of it.
TIERCEL_INLINE uint64_t LowSlots(int64_t n) {
  return n <= 0 ? 0 : n >= kWordSlots ? ~uint64_t{0} : (uint64_t{1} << n) - 1;
}
// Slots first..end - 1; both may lie outside of the page.
TIERCEL_INLINE SlotSet SlotsBetween(int64_t first, int64_t end) {
  SlotSet set;
  for (int i = 0; i < kWords; ++i) {
    set.word[i] =
        LowSlots(end - kWordSlots * i) & ~LowSlots(first - kWordSlots * i);
  }
  return set;
}
TIERCEL_INLINE SlotSet operator&(const SlotSet& a, const SlotSet& b) {
  SlotSet set;
  for (int i = 0; i < kWords; ++i) set.word[i] = a.word[i] & b.word[i];
  return set;
}
TIERCEL_INLINE SlotSet operator|(const SlotSet& a, const SlotSet& b) {
  SlotSet set;
  for (int i = 0; i < kWords; ++i) set.word[i] = a.word[i] | b.word[i];
  return set;
}

TIERCEL_INLINE bool IsIn(const SlotSet& set, int slot) {
  return (set.word[slot / kWordSlots] >> slot % kWordSlots & 1) != 0;
}
// The first slot from `slot` on that is in the set, or kPageTokens.
TIERCEL_INLINE int NextIn(const SlotSet& set, int slot) {
  for (int i = slot / kWordSlots; i < kWords; ++i) {
    const uint64_t word = set.word[i] & ~LowSlots(slot - kWordSlots * i);
    if (word != 0) return kWordSlots * i + __builtin_ctzll(word);
  }
  return kPageTokens;
}
// The first that is not.
TIERCEL_INLINE int NextOut(const SlotSet& set, int slot) {
  for (int i = slot / kWordSlots; i < kWords; ++i) {
    const uint64_t word = ~set.word[i] & ~LowSlots(slot - kWordSlots * i);
    if (word != 0) return kWordSlots * i + __builtin_ctzll(word);
  }
  return kPageTokens;
}
// Which of the 16 slots of a group are in the set.
TIERCEL_INLINE int LanesOf(const SlotSet& set, int group) {
  constexpr int kInWord = kWordSlots / kLanes;
  return static_cast<int>(set.word[group / kInWord] >>
                          group % kInWord * kLanes) &
         kAllLanes;
}

TIERCEL_INLINE bool IsWhole(const SlotSet& set) {
  uint64_t all = ~uint64_t{0};
  for (int i = 0; i < kWords; ++i) all &= set.word[i];
  return all == ~uint64_t{0};
}

// What row `row` of a block sees.
TIERCEL_INLINE SlotSet SeenBy(const AttentionBlock& b, int64_t row) {
  if (b.begin == 0 && b.end + row >= kPageTokens && b.recent + row <= 0) {
    return SlotsBetween(0, kPageTokens);
  }
  return SlotsBetween(b.begin, b.end + row) &
         (b.fixed | SlotsBetween(b.recent + row, kPageTokens));
}
// What rows `row` and after it see, taken together: windows move by one slot a
// row, so that they leave no gaps.
TIERCEL_INLINE SlotSet SeenFrom(const AttentionBlock& b, int64_t row) {
  return SlotsBetween(b.begin, b.end + b.rows - 1) &
         (b.fixed | SlotsBetween(b.recent + row, kPageTokens));
}

}  // namespace tiercel::TIERCEL_ISA_NS

#endif  // TIERCEL_KERNELS_ATTENTION_ATTENTION_CPU_SLOTS_H_
