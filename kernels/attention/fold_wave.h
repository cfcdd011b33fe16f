#ifndef TIERCEL_KERNELS_ATTENTION_FOLD_WAVE_H_
#define TIERCEL_KERNELS_ATTENTION_FOLD_WAVE_H_

#include <cmath>
#include <limits>

#include "kernels/attention/attention_body.h"
#include "kernels/device/device_lang.h"
#include "kernels/device/stages.h"
#include "kernels/number/reference_math.h"

namespace tiercel {

// A block folds the pages of one query in their order. Maxima are the same in
// any order, so the weights of each page and of all pages before it are found
// for many pages at once, one page per thread. Only the sums are chains: the
// first warp computes them, four elements of the head per lane, while the other
// warps fetch the results of later pages.
struct FoldWave {
  static constexpr int kMaxThreads = 128;
  static constexpr int kWarps = kMaxThreads / kWarpLanes;
  static constexpr int kElements = 4;  // elements of the head per lane
  static constexpr int kSlice = kElements * kWarpLanes;
  static constexpr int kPart = 16;  // pages that pass at a time
  static constexpr int kStages = 5;
  static constexpr int kStageFloats = kPart * kSlice;
  static constexpr float kUnseen = -1.0f;  // stands for the weight of no cell
  static_assert(kMaxThreads % kPart == 0);

  struct Shared {
    Array<float, 2 * kMaxThreads> weights;  // old_weight, then new_weight
    Array<float, kMaxThreads> sums;
    Array<float, kWarps> of_warps;
    Array<float, kStages * kStageFloats> values;  // last: not all are used
  };
  AttentionWave w;

  static constexpr size_t BytesFor(int64_t pages) {
    const int64_t parts = (pages + kPart - 1) / kPart;
    const size_t unused = parts < kStages ? kStages - parts : 0;
    return sizeof(Shared) - unused * kStageFloats * sizeof(float);
  }

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& shared) const {
    const int64_t query = t.block;
    float max = 0.0f;
    float sum = 0.0f;
    for (int d = 0; d < w.layout.head_dim; d += kSlice) {
      max = w.first ? 0.0f : w.running_max[query];
      sum = w.first ? 0.0f : w.running_sum[query];
      FoldElements(t, shared, query, d, max, sum);
    }
    if (t.index != 0) return;  // all have read the running maximum and sum
    w.running_max[query] = max;
    w.running_sum[query] = sum;
  }

  // The result of one page for the query that is folded.
  struct Page {
    float sum;  // zero: nothing is seen
    float max;
  };
  TIERCEL_DEVICE Page PageAt(int64_t query, int page) const {
    if (page >= w.num_pages) return {0.0f, 0.0f};
    const int64_t place = page * w.rows * w.heads + query;
    return {w.sum[place], w.max[place]};
  }

  // Folds elements d..d + kSlice - 1 of the head, as far as they exist. Every
  // thread gets the maximum over all pages, and the first warp the sum.
  TIERCEL_DEVICE void FoldElements(const Thread& t, Shared& shared,
                                   int64_t query, int d, float& max,
                                   float& sum) const {
    const int head_dim = w.layout.head_dim;
    const int pages = static_cast<int>(w.num_pages);
    const int64_t stride = w.rows * w.heads * int64_t{head_dim};
    const int element = t.lane() * kElements;  // the lane's first element
    const bool has = d + element < head_dim;
    const bool own = has && t.warp() == 0;
    const float* const given = &w.out[query * head_dim + d + element];
    float* const result = &w.result[query * head_dim + d + element];
    const auto fetch = [&](int part, int stage) {
      if (!has || t.warp() == 0) return;
      for (int i = t.warp() - 1; i < kPart; i += kWarps - 1) {
        const int page = part * kPart + i;
        if (page >= pages) return;
        CopyAsync16(&shared.values[stage * kStageFloats + i * kSlice + element],
                    given + page * stride);
      }
    };

    Barrier();  // all are done with the elements before
    for (int i = 0; i < kStages - 1; ++i) {
      fetch(i, i);
      CopyCommit();
    }
    Page next = PageAt(query, t.index);
    // The chain begins with minus zero: adding x to it gives x, also if x is
    // a zero of either sign.
    float out[kElements];
#pragma unroll
    for (int e = 0; e < kElements; ++e) {
      out[e] = own && sum != 0.0f ? result[e] : -0.0f;
    }
    bool is_seen = sum != 0.0f;
    ThroughStages<kStages>(
        0, (pages + kPart - 1) / kPart, fetch, [&](int part, int stage) {
          const int first = part * kPart % kMaxThreads;
          if (first == 0) {
            is_seen = FindWeights(t, shared, next, max, is_seen);
            next = PageAt(query, part * kPart + kMaxThreads + t.index);
          }
          if (t.warp() != 0) return;
        // Pages after the last count as pages of which nothing is seen.
#pragma unroll
          for (int i = 0; i < kPart; i += 4) {
            float old_weights[4];
            float new_weights[4];
            float sums[4];
            GetFour(&shared.weights[first + i], old_weights);
            GetFour(&shared.weights[kMaxThreads + first + i], new_weights);
            GetFour(&shared.sums[first + i], sums);
#pragma unroll
            for (int j = 0; j < 4; ++j) {
              float x[kElements];
              GetFour(&shared.values[stage * kStageFloats + (i + j) * kSlice +
                                     element],
                      x);
              const bool seen = !(new_weights[j] < 0.0f);
              const auto add = [&](float value, float& chain) {
                const float with =
                    std::fma(chain, old_weights[j], value * new_weights[j]);
                chain = seen ? with : chain;
              };
#pragma unroll
              for (int e = 0; e < kElements; ++e) add(x[e], out[e]);
              add(sums[j], sum);
            }
          }
        });
#pragma unroll
    for (int e = 0; e < kElements; ++e) {
      if (own) result[e] = w.last ? out[e] / sum : out[e];
    }
  }

  static TIERCEL_DEVICE void GetFour(const float* from, float* to) {
    const Packet<float> four = Load16(from);
#pragma unroll
    for (int i = 0; i < 4; ++i) to[i] = four[i];
  }

  // Stores the sums and weights of kMaxThreads pages, one per thread. `max` is
  // the maximum of the pages before, if `is_seen` says that one of them was
  // seen, and becomes the maximum including these pages. Returns true if a page
  // has been seen by then.
  TIERCEL_DEVICE bool FindWeights(const Thread& t, Shared& shared,
                                  const Page& page, float& max,
                                  bool is_seen) const {
    constexpr float kNone = -std::numeric_limits<float>::infinity();
    const bool own = page.sum != 0.0f;
    const float page_max = own ? page.max : kNone;

    // 1. the maximum up to each page, within its warp
    float upto = page_max;
    for (int lanes = 1; lanes < kWarpLanes; lanes *= 2) {
      upto = Greater(Before(t, upto, lanes), upto);
    }
    Barrier();  // all are done with the weights before
    if (t.lane() == kWarpLanes - 1) shared.of_warps[t.warp()] = upto;
    float before = Before(t, upto, 1);
    if (t.lane() == 0) before = kNone;
    Barrier();

    // 2. the same including the warps before and the pages before all of these
    float all = is_seen ? max : kNone;
    float carried = all;
    for (int warp = 0; warp < kWarps; ++warp) {
      if (warp == t.warp()) carried = all;
      all = Greater(all, shared.of_warps[warp]);
    }
    before = Greater(carried, before);
    const float with = Greater(before, page_max);
    shared.sums[t.index] = page.sum;
    shared.weights[t.index] = ExpLaneOfNegative(before - with);
    shared.weights[kMaxThreads + t.index] =
        own ? ExpLaneOfNegative(page_max - with) : kUnseen;
    max = all;
    Barrier();
    return all != kNone;
  }

  // The value of the lane that is `lanes` before this one; the first lanes,
  // which have none, get their own.
  static TIERCEL_DEVICE float Before(const Thread& t, float value, int lanes) {
    return Shuffle(kAllLanes, value,
                   t.lane() < lanes ? t.lane() : t.lane() - lanes);
  }
  // The greater number. NaN need not be handled: a page whose maximum is NaN
  // has a sum that is NaN too.
  static TIERCEL_DEVICE float Greater(float a, float b) {
    return a > b ? a : b;
  }
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_ATTENTION_FOLD_WAVE_H_
