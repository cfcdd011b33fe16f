// Bytes: 12 an element.
// Operations: an exponential and a division, some 30 f32, an element.
// Bound by: the launch for one row, memory for a prompt.

#include "kernels/device/device_lang.h"
#include "kernels/layer/prologue_device.h"
#include "kernels/layer/swiglu.h"

namespace tiercel {
namespace {

// A thread computes four elements, and moves 12 bytes for each. The rest after
// the last four, or all elements if an array is not aligned, are computed one
// by one.
struct SwigluElements {
  static constexpr int kMaxThreads = 256;
  struct Shared {};
  const float* gate;
  const float* up;
  int64_t n;
  int64_t in_packets;  // the first elements, which are computed by fours
  float* out;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared&) const {
    const int64_t first = t.block * t.count + t.index;
    const int64_t threads = t.blocks * t.count;
    for (int64_t i = 4 * first; i < in_packets; i += 4 * threads) {
      const Packet<float> g = Load16(gate + i);
      Packet<float> x = Load16(up + i);
#pragma unroll
      for (int j = 0; j < 4; ++j) x[j] = SwigluOf(g[j], x[j]);
      Store16(x, out + i);
    }
    for (int64_t i = in_packets + first; i < n; i += threads) {
      out[i] = SwigluOf(gate[i], up[i]);
    }
  }
};

}  // namespace

TIERCEL_KERNEL_BODY(SwigluCuda, CUstream_st* stream, const float* gate,
                    const float* up, int64_t n, float* out) {
  if (n == 0) return 0;
  constexpr int kThreads = SwigluElements::kMaxThreads;
  const bool packets = IsAligned(gate) && IsAligned(up) && IsAligned(out);
  return Launch(stream, TurnsFor(n, 4 * kThreads, kThreads),
                SwigluElements{gate, up, n, packets ? n / 4 * 4 : 0, out});
}

}  // namespace tiercel
