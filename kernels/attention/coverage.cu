#include <cmath>
#include <limits>

#include "kernels/attention/coverage_body.h"
#include "kernels/attention/coverage_params.h"
#include "kernels/device/block_sums.h"
#include "kernels/device/device_lang.h"
#include "kernels/number/reference_math.h"

namespace tiercel {
namespace {

// A block weighs the positions of one query head. One thread adds those that
// are kept, in double as the contract says: this is for measuring alone.
struct CoverHeads {
  static constexpr int kMaxThreads = 256;
  struct Shared {
    BlockSums sums;
  };
  CoverageParams p;
  const int32_t* kept;  // [kv_heads, num_kept]

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& shared) const {
    constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
    float* const scores = p.scores + t.block * p.scores_stride;
    float max = -std::numeric_limits<float>::infinity();
    for (int64_t j = t.index; j < p.positions; j += t.count) {
      max = MaxOrNan(max, std::isfinite(scores[j]) ? scores[j] : kNaN);
    }
    max = MaxOfBlock(t, max, shared.sums.of_warps);
    if (std::isnan(max)) {  // all threads know
      if (t.index == 0) p.out[t.block] = kNaN;
      return;
    }
    const auto plain = [](float sum, float weight) { return sum + weight; };
    HeadSums sums;
    sums.all = SumInChains(
        t, p.positions, shared.sums,
        [&](int64_t j) { return scores[j] = ExpLane(scores[j] - max); }, plain);
    sums.newest = SumInChains(
        t, p.positions - p.newest, shared.sums,
        [&](int64_t j) { return scores[p.newest + j]; }, plain);
    if (t.index != 0) return;
    const int64_t kv_head = t.block / (p.heads / p.kv_heads);
    p.out[t.block] =
        CoverageOf(sums, scores, kept + kv_head * p.num_kept, p.num_kept);
  }
};

}  // namespace

int CoverageCuda(CUstream_st* stream, const CoverageParams& p,
                 const int32_t* kept) {
  return Launch(stream, {.blocks = p.heads, .threads = CoverHeads::kMaxThreads},
                CoverHeads{p, kept});
}

}  // namespace tiercel
