// Bytes: 4 an expert and element read, 8 an element added to.
// Operations: a multiply-add an expert and element.
// Bound by: the launch for one row, memory for a prompt.

#include <cmath>

#include "kernels/device/device_lang.h"
#include "kernels/layer/expert_sum.h"

namespace tiercel {
namespace {

// A thread computes an element.
struct SumExperts {
  static constexpr int kMaxThreads = 256;
  struct Shared {};
  ExpertSumParams p;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared&) const {
    const int64_t all = p.rows * p.dim;
    for (int64_t i = t.block * t.count + t.index; i < all;
         i += t.blocks * t.count) {
      const int64_t row = i / p.dim;
      const int64_t n = i % p.dim;
      const int32_t* const items = p.items + row * p.used;
      const float* const shares = p.shares.raw() + row * p.used;
      float sum = 0.0f;
      for (int j = 0; j < p.used; ++j) {
        sum = std::fma(shares[j], p.y.raw()[items[j] * p.y_stride + n], sum);
      }
      p.out.raw()[row * p.out_stride + n] += sum;
    }
  }
};

}  // namespace

TIERCEL_KERNEL_BODY(ExpertSumCuda, CUstream_st* stream,
                    const ExpertSumParams& p) {
  constexpr int kThreads = SumExperts::kMaxThreads;
  return Launch(stream, TurnsFor(p.rows * p.dim, kThreads, kThreads),
                SumExperts{p});
}

}  // namespace tiercel
