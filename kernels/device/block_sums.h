#ifndef TIERCEL_KERNELS_DEVICE_BLOCK_SUMS_H_
#define TIERCEL_KERNELS_DEVICE_BLOCK_SUMS_H_

// Maxima and sums over all threads of a block, which has whole warps.

#include <cmath>

#include "kernels/device/device_lang.h"

namespace tiercel {

struct BlockSums {
  static constexpr int kChains = 16;
  static constexpr int kTile = 1024;

  Array<float, kTile> tile;
  Array<float, kWarpLanes> of_warps;
  float total;
};

// The greater of the two, or NaN if one of them is NaN.
TIERCEL_DEVICE float MaxOrNan(float a, float b) {
  return std::isnan(a) ? a : std::isnan(b) || b > a ? b : a;
}

// The greatest of the threads' `own` values, or NaN if one of them is NaN.
// Every thread gets it.
TIERCEL_DEVICE float MaxOfBlock(const Thread& t, float own,
                                Array<float, kWarpLanes>& of_warps) {
  for (int bits = kWarpLanes / 2; bits > 0; bits /= 2) {
    own = MaxOrNan(own, ShuffleXor(kAllLanes, own, bits));
  }
  Barrier();  // all have read the maximum of the call before
  if (t.lane() == 0) of_warps[t.warp()] = own;
  Barrier();
  float max = of_warps[0];
  for (int warp = 1; warp < t.count / kWarpLanes; ++warp) {
    max = MaxOrNan(max, of_warps[warp]);
  }
  return max;
}

// The sum of value(j), 0 <= j < n, in the order of sixteen lanes of the CPU:
// chain j % 16 continues with add(sum, value(j)), and the tree of SumLanes
// follows. Every thread gets it. value(j) is called once, by one thread; all
// threads see afterwards what it wrote.
template <typename Value, typename Add>
TIERCEL_DEVICE float SumInChains(const Thread& t, int64_t n, BlockSums& s,
                                 const Value& value, const Add& add) {
  float sum = 0.0f;  // the sum of chain t.index
  Barrier();         // all have read the last call's total, even if n is 0
  for (int64_t begin = 0; begin < n; begin += BlockSums::kTile) {
    const int64_t left = n - begin;
    const int size =
        left < BlockSums::kTile ? static_cast<int>(left) : BlockSums::kTile;
    Barrier();  // all are done with the tile before
    for (int i = t.index; i < size; i += t.count) {
      s.tile[i] = value(begin + i);
    }
    Barrier();
    if (t.index >= BlockSums::kChains) continue;
    for (int i = t.index; i < size; i += BlockSums::kChains) {
      sum = add(sum, s.tile[i]);
    }
  }
  if (t.warp() == 0) {
    for (int half = BlockSums::kChains / 2; half > 0; half /= 2) {
      sum += ShuffleDown(kAllLanes, sum, half, BlockSums::kChains);
    }
    if (t.index == 0) s.total = sum;
  }
  Barrier();
  return s.total;
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_BLOCK_SUMS_H_
