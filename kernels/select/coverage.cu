// Bytes: the scores of a query head three times, from the second-level cache.
// Operations: an exponential, some 20 f32, a score.
// Bound by: the one thread of a head that adds the kept positions.

#include <cmath>

#include "kernels/device/block_sums.h"
#include "kernels/device/device_lang.h"
#include "kernels/select/coverage.h"
#include "kernels/select/exponentiate_scores.h"

namespace tiercel {
namespace {

// A block weighs the positions of one query head. One thread adds the weights
// of those that are kept, in double as the contract says. It need not be fast,
// as it serves measurements alone.
struct CoverHeads {
  static constexpr int kMaxThreads = 256;
  struct Shared {
    BlockSums sums;
  };
  CoverageParams p;
  const int32_t* kept;  // [kv_heads, num_kept]

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& shared) const {
    float* const scores = p.scores.raw() + t.block * p.scores_stride;
    HeadSums sums;
    sums.all = ExponentiateScores(t, scores, p.positions, shared.sums);
    if (std::isnan(sums.all)) {  // all threads know
      if (t.index == 0) p.out.raw()[t.block] = sums.all;
      return;
    }
    sums.newest = SumInChains(
        t, p.positions - p.newest, shared.sums,
        [&](int64_t j) { return scores[p.newest + j]; },
        [](float sum, float weight) { return sum + weight; });
    if (t.index != 0) return;
    const int64_t kv_head = t.block / (p.heads / p.kv_heads);
    p.out.raw()[t.block] =
        CoverageOf(sums, scores, kept + kv_head * p.num_kept, p.num_kept);
  }
};

}  // namespace

TIERCEL_KERNEL_BODY(CoverageCuda, CUstream_st* stream, const CoverageParams& p,
                    DevicePtr<const int32_t> kept) {
  return Launch(stream, {.blocks = p.heads, .threads = CoverHeads::kMaxThreads},
                CoverHeads{p, kept.raw()});
}

}  // namespace tiercel
