// Bytes: 4 an expert and row read, 8 a chosen one written.
// Operations: an exponential, some 20 f32, an expert; a comparison of each two.
// Bound by: the launch and the latency of a block's barriers for one row.

#include "kernels/device/block_sums.h"
#include "kernels/device/device_lang.h"
#include "kernels/layer/expert_choice.h"
#include "kernels/number/reference_math.h"

namespace tiercel {
namespace {

// A block takes one row at a time.
struct ChooseExperts {
  static constexpr int kMaxThreads = 256;
  static constexpr int kBlocksAtOnce = 4;
  static constexpr int kMost = ExpertChoiceParams::kMostExperts;
  struct Shared {
    BlockSums sums;
    Array<float, kMost> powers;
    Array<uint32_t, kMost> orders;
    Array<uint8_t, kMost> chosen;
  };
  ExpertChoiceParams p;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& s) const {
    for (int64_t row = t.block; row < p.rows; row += t.blocks) {
      Choose(t, s, p.logits.raw() + row * p.experts,
             p.chosen.raw() + row * p.used, p.shares.raw() + row * p.used);
    }
  }

  TIERCEL_DEVICE void Choose(const Thread& t, Shared& s, const float* logits,
                             int32_t* chosen, float* shares) const {
    // 1. The powers of all, and their sum.
    float own = logits[0];
    for (int e = t.index; e < p.experts; e += t.count) {
      own = MaxOrNan(own, logits[e]);
    }
    const float max = MaxOfBlock(t, own, s.sums.of_warps);
    const float sum = SumInChains(
        t, p.experts, s.sums,
        [logits, max, &s](int64_t e) {
          const float power = ExpLane(logits[e] - max);
          s.powers[static_cast<int>(e)] = power;
          return power;
        },
        [](float all, float power) { return all + power; });

    // 2. The greatest logits: those with fewer than `used` before them.
    for (int e = t.index; e < p.experts; e += t.count) {
      s.orders[e] = ExpertOrder(logits[e]);
    }
    Barrier();
    for (int e = t.index; e < p.experts; e += t.count) {
      int before = 0;
      for (int other = 0; other < p.experts; ++other) {
        before += s.orders[other] > s.orders[e] ||
                  (s.orders[other] == s.orders[e] && other < e);
      }
      s.chosen[e] = before < p.used;
    }
    Barrier();
    for (int e = t.index; e < p.experts; e += t.count) {
      if (s.chosen[e] == 0) continue;
      int place = 0;
      for (int other = 0; other < e; ++other) place += s.chosen[other];
      chosen[place] = e;
    }
    Barrier();

    // 3. Their shares.
    if (t.index == 0) {
      float total = 0.0f;
      for (int i = 0; i < p.used; ++i) {
        shares[i] = s.powers[chosen[i]] / sum;
        total += shares[i];
      }
      for (int i = 0; p.normed && i < p.used; ++i) shares[i] /= total;
    }
    Barrier();  // the powers have been read
  }
};

}  // namespace

TIERCEL_KERNEL_BODY(ExpertChoiceCuda, CUstream_st* stream,
                    const ExpertChoiceParams& p) {
  return Launch(stream, TurnsFor(p.rows, 1, ChooseExperts::kMaxThreads),
                ChooseExperts{p});
}

}  // namespace tiercel
