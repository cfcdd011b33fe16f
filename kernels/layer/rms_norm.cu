// Bytes: 8 an element, x read twice, the second time from a cache.
// Operations: 4 f32 an element; 16 chains, so n / 16 of them in a row.
// Bound by: the launch and the chains for one row, memory for a prompt.

#include "kernels/device/block_sums.h"
#include "kernels/device/device_lang.h"
#include "kernels/layer/prologue_device.h"
#include "kernels/layer/rms_norm.h"

namespace tiercel {
namespace {

// A block takes one group at a time.
struct NormGroups {
  static constexpr int kMaxThreads = 256;
  struct Shared {
    BlockSums sums;
  };
  RmsNormParams p;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& shared) const {
    for (int64_t g = t.block; g < p.rows * p.groups; g += t.blocks) {
      const int64_t row = g / p.groups;
      const int64_t column = g % p.groups * p.dim;
      NormGroup(t, shared, p.x.raw() + row * p.x_stride + column,
                p.out.raw() + row * p.out_stride + column);
    }
  }

  TIERCEL_DEVICE void NormGroup(const Thread& t, Shared& shared, const float* x,
                                float* out) const {
    const float factor = NormFactor(t, x, p.dim, p.eps, shared.sums);
    // Each element is read again by the thread that writes it, as out may be x.
#pragma unroll 4
    for (int i = t.index; i < p.dim; i += t.count) {
      out[i] = x[i] * factor * p.weight.raw()[i];
    }
  }
};

}  // namespace

TIERCEL_KERNEL_BODY(RmsNormCuda, CUstream_st* stream, const RmsNormParams& p) {
  if (p.rows == 0) return 0;
  // A thread has four elements or more, and warps are whole.
  constexpr int kEach = 4 * kWarpLanes;
  const int threads =
      p.dim < 2 * kEach ? kWarpLanes : p.dim / kEach * kWarpLanes;
  constexpr int kMost = NormGroups::kMaxThreads;
  return Launch(
      stream, TurnsFor(p.rows * p.groups, 1, threads < kMost ? threads : kMost),
      NormGroups{p});
}

}  // namespace tiercel
