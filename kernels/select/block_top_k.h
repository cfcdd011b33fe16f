#ifndef TIERCEL_KERNELS_SELECT_BLOCK_TOP_K_H_
#define TIERCEL_KERNELS_SELECT_BLOCK_TOP_K_H_

// Selects the k greatest of many numbers by a block of threads.

#include <bit>

#include "kernels/device/device_lang.h"

namespace tiercel {

struct BlockTopK {
  static constexpr int kThreads = 256;  // threads per block
  static constexpr int kDigit = 256;    // a byte of a number's order

  struct Shared {
    Array<uint32_t, kDigit> counts;
    Array<uint32_t, kThreads / kWarpLanes> of_warps;
    uint32_t prefix;
    uint32_t left;
  };

  // Maps a number to an integer so that the order is kept; the two zeros are
  // equal.
  static TIERCEL_DEVICE uint32_t OrderOf(float x) {
    const auto bits = std::bit_cast<uint32_t>(x + 0.0f);
    return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
  }

  // Writes the indices of the k greatest of n numbers in ascending order, each
  // with `offset` added. Of equal numbers the earlier are taken. No number is
  // NaN, and 0 < k <= n.
  static TIERCEL_DEVICE void Keep(const Thread& t, Shared& s, const float* v,
                                  int64_t n, int64_t k, int32_t offset,
                                  int32_t* out) {
    // 1. Find the order of the least number that is kept, byte by byte from the
    // top, and how many numbers equal to it are kept.
    if (t.index == 0) {
      s.prefix = 0;
      s.left = static_cast<uint32_t>(k);
    }
    for (int shift = 24; shift >= 0; shift -= 8) {
      s.counts[t.index] = 0;
      Barrier();  // the counts are zero, the last byte is known
      const uint32_t prefix = s.prefix;
      for (int64_t j = t.index; j < n; j += t.count) {
        const uint32_t order = OrderOf(v[j]);
        if (shift < 24 && order >> (shift + 8) != prefix) continue;
        AtomicAdd(&s.counts[static_cast<int>(order >> shift & 0xffu)], 1);
      }
      Barrier();
      if (t.index == 0) ChooseDigit(s);
      Barrier();
    }

    // 2. Write the indices of the numbers above it and of the first equal ones.
    const uint32_t least = s.prefix;
    uint32_t equals = s.left;  // equal numbers that are still to be kept
    for (int64_t first = 0; first < n; first += t.count) {
      const int64_t j = first + t.index;
      const uint32_t order = j < n ? OrderOf(v[j]) : 0;
      const uint32_t before = CountBefore(t, s, j < n && order == least);
      const bool kept =
          j < n && (order > least || (order == least && before < equals));
      const uint32_t all = TotalOf(t, s);
      equals = all < equals ? equals - all : 0;
      const uint32_t place = CountBefore(t, s, kept);
      if (kept) out[place] = offset + static_cast<int32_t>(j);
      out += TotalOf(t, s);
    }
  }

 private:
  static TIERCEL_DEVICE void ChooseDigit(Shared& s) {
    int digit = kDigit - 1;
    for (; s.counts[digit] < s.left; --digit) s.left -= s.counts[digit];
    s.prefix = s.prefix << 8 | static_cast<uint32_t>(digit);
  }

  // The number of threads before this one whose `vote` is true.
  static TIERCEL_DEVICE uint32_t CountBefore(const Thread& t, Shared& s,
                                             bool vote) {
    const uint32_t votes = Ballot(kAllLanes, vote);
    Barrier();  // all have read the counts before
    if (t.lane() == 0) {
      s.of_warps[t.warp()] = static_cast<uint32_t>(std::popcount(votes));
    }
    Barrier();
    auto count = static_cast<uint32_t>(
        std::popcount(votes & ((uint32_t{1} << t.lane()) - 1)));
    for (int warp = 0; warp < t.warp(); ++warp) count += s.of_warps[warp];
    return count;
  }
  // The number of all threads whose vote was true in the last CountBefore.
  static TIERCEL_DEVICE uint32_t TotalOf(const Thread& t, Shared& s) {
    uint32_t total = 0;
    for (int warp = 0; warp < t.count / kWarpLanes; ++warp) {
      total += s.of_warps[warp];
    }
    return total;
  }
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SELECT_BLOCK_TOP_K_H_
