#ifndef TIERCEL_KERNELS_ATTENTION_FOLD_WAVE_H_
#define TIERCEL_KERNELS_ATTENTION_FOLD_WAVE_H_

#include <cmath>
#include <limits>

#include "kernels/attention/attention_body.h"
#include "kernels/device/device_lang.h"
#include "kernels/number/reference_math.h"

namespace tiercel {

// A block folds the pages of one query in their order, an element of the head a
// thread. Maxima are the same in any order, so what each page and all before it
// weigh is found for many pages at once, a page a thread; only the sums are
// chains.
struct FoldWave {
  static constexpr int kMaxThreads = 128;
  static constexpr int kWarps = kMaxThreads / kWarpLanes;
  static constexpr int kAtOnce = 8;  // pages
  struct Shared {
    Array<float, kMaxThreads> sums;         // zero: nothing is seen
    Array<float, kMaxThreads> old_weights;  // of all that came before
    Array<float, kMaxThreads> new_weights;  // of the page
    Array<float, kWarps> of_warps;
  };
  AttentionWave w;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& shared) const {
    const int64_t queries = w.rows * w.heads;
    for (int64_t query = t.block; query < queries; query += t.blocks) {
      // Every thread follows the maximum and the sum by itself.
      float max = w.first ? 0.0f : w.running_max[query];
      float sum = w.first ? 0.0f : w.running_sum[query];
      const float sum_before = sum;
      const float max_before = max;
      for (int first = 0; first < w.layout.head_dim; first += t.count) {
        const int d = first + t.index;
        max = max_before;
        sum = sum_before;
        FoldElement(t, shared, query, d, max, sum);
      }
      Barrier();  // all have read what ran so far
      if (t.index != 0) continue;
      w.running_max[query] = max;
      w.running_sum[query] = sum;
    }
  }

  // All threads of the block call it; those whose d is beyond the head help to
  // find weights.
  TIERCEL_DEVICE void FoldElement(const Thread& t, Shared& shared,
                                  int64_t query, int d, float& max,
                                  float& sum) const {
    const int head_dim = w.layout.head_dim;
    const int64_t stride = w.rows * w.heads;
    const bool own = d < head_dim;
    float* const result = &w.result[query * head_dim + (own ? d : 0)];
    float out = sum == 0.0f ? 0.0f : *result;
    for (int64_t begin = 0; begin < w.num_pages; begin += t.count) {
      const int64_t left = w.num_pages - begin;
      const int size = left < t.count ? static_cast<int>(left) : t.count;
      FindWeights(t, shared, query, begin, size, max, sum != 0.0f);
      const float* const page_out =
          &w.out[(begin * stride + query) * head_dim + (own ? d : 0)];
      for (int some = 0; some < size; some += kAtOnce) {
        // They are on their way together, while the chain waits for none.
        float values[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const int page = some + i;
          const bool seen = page < size && shared.sums[page] != 0.0f;
          values[i] = seen ? page_out[page * stride * head_dim] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const int page = some + i;
          if (page >= size || shared.sums[page] == 0.0f) continue;
          const float page_sum = shared.sums[page];
          if (sum == 0.0f) {  // nothing yet: the page as it is
            sum = page_sum;
            out = values[i];
            continue;
          }
          const float old_weight = shared.old_weights[page];
          const float new_weight = shared.new_weights[page];
          sum = std::fma(sum, old_weight, page_sum * new_weight);
          out = std::fma(out, old_weight, values[i] * new_weight);
        }
      }
    }
    if (own) *result = w.last ? out / sum : out;
  }

  // Puts the sums and weights of `size` pages from `begin` on. `max` is the
  // greatest before them, if `is_seen` says that there was one, and becomes
  // that with them.
  TIERCEL_DEVICE void FindWeights(const Thread& t, Shared& shared,
                                  int64_t query, int64_t begin, int size,
                                  float& max, bool is_seen) const {
    constexpr float kNone = -std::numeric_limits<float>::infinity();
    const int64_t place = (begin + t.index) * w.rows * w.heads + query;
    const bool own = t.index < size;
    const float page_sum = own ? w.sum[place] : 0.0f;
    const float page_max = page_sum != 0.0f ? w.max[place] : kNone;

    // 1. the greatest up to each page, within its warp
    float upto = page_max;
    for (int lanes = 1; lanes < kWarpLanes; lanes *= 2) {
      upto = Greater(Before(t, upto, lanes), upto);
    }
    Barrier();  // all are done with the weights before
    if (t.lane() == kWarpLanes - 1) shared.of_warps[t.warp()] = upto;
    float before = Before(t, upto, 1);
    if (t.lane() == 0) before = kNone;
    Barrier();

    // 2. with the warps before, and what came before all of them
    float all = is_seen ? max : kNone;
    float carried = all;
    for (int warp = 0; warp < kWarps; ++warp) {
      if (warp == t.warp()) carried = all;
      all = Greater(all, shared.of_warps[warp]);
    }
    before = Greater(carried, before);
    const float with = Greater(before, page_max);
    shared.sums[t.index] = page_sum;
    shared.old_weights[t.index] = ExpLane(before - with);
    shared.new_weights[t.index] = ExpLane(page_max - with);
    max = all;
    Barrier();
  }

  // The value of the lane so many before; a lane without one gets its own.
  static TIERCEL_DEVICE float Before(const Thread& t, float value, int lanes) {
    return Shuffle(kAllLanes, value,
                   t.lane() < lanes ? t.lane() : t.lane() - lanes);
  }
  // For numbers alone: a maximum that is NaN has a sum that is NaN too.
  static TIERCEL_DEVICE float Greater(float a, float b) {
    return a > b ? a : b;
  }
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_ATTENTION_FOLD_WAVE_H_
