// Activations as int8, with a norm or a gate before, for products with
// quantised weights.
//
// Bytes: 4 an element of x read, twice if it is normed, the second time from a
// cache, and 4 of a gate's partner; 1.25 an element written.
// Operations: some 60 f32 an element, most of them to find the best scale; with
// a norm 4 more and 16 chains a row, with a gate some 30.
// Bound by: the launch for a few rows, memory for a prompt.

#include <cmath>
#include <limits>

#include "kernels/device/block_sums.h"
#include "kernels/device/device_lang.h"
#include "kernels/layer/matmul_body.h"
#include "kernels/layer/matmul_device.h"
#include "kernels/layer/prologue_device.h"

namespace tiercel {
namespace {

// The rows of x, and their place. Half a warp quantises a block of 32: lane i
// of it has elements i and i + 16.
struct Q8Rows {
  static constexpr int kLanes = 16;

  Activations in;
  int64_t pairs;     // pairs of blocks of a row
  int64_t all_rows;  // whole tiles of 8
  Q8Fragments* out;  // [all_rows / 8][pairs]

  TIERCEL_DEVICE bool Has(int64_t row, int64_t block) const {
    return row < in.rows && block * 32 < in.k;
  }

  // Writes a block, of which the lane has two elements. All lanes of a warp
  // call it at once; a block beyond the fragments is not written.
  TIERCEL_DEVICE void Put(const Thread& t, int64_t row, int64_t block,
                          float low, float high) const {
    const int lane = t.lane() % kLanes;
    // 1. check that all is finite, and find the greatest magnitude
    const uint32_t fine =
        Ballot(kAllLanes, std::isfinite(low) && std::isfinite(high));
    const bool finite =
        (fine >> (t.lane() / kLanes * kLanes) & 0xffffu) == 0xffffu;
    float max = std::fmax(std::fabs(low), std::fabs(high));
    for (int bits = kLanes / 2; bits > 0; bits /= 2) {
      max = std::fmax(max, ShuffleXor(kAllLanes, max, bits));
    }

    // 2. find the scale that rounds best
    constexpr float kSteps[kNumQ8Steps] = {kQ8Steps[0], kQ8Steps[1],
                                           kQ8Steps[2], kQ8Steps[3]};
    float scale = max / kSteps[0];
    const bool codes = finite && scale != 0.0f;
    float least = RoundingError(low, high, scale);
#pragma unroll
    for (int i = 1; i < kNumQ8Steps; ++i) {
      const float other = max / kSteps[i];
      const float error = RoundingError(low, high, other);
      if (error < least) {
        least = error;
        scale = other;
      }
    }
    if (!finite) scale = std::numeric_limits<float>::quiet_NaN();

    // 3. compute the codes and their sums
    const int code_low = codes ? static_cast<int>(CodeOf(low, scale)) : 0;
    const int code_high = codes ? static_cast<int>(CodeOf(high, scale)) : 0;
    int sum_low = code_low;
    int sum_high = code_high;
    for (int bits = kLanes / 2; bits > 0; bits /= 2) {
      sum_low += ShuffleXor(kAllLanes, sum_low, bits);
      sum_high += ShuffleXor(kAllLanes, sum_high, bits);
    }
    if (row >= all_rows || block >= 2 * pairs) return;
    Q8Fragments& to = out[row / 8 * pairs + block / 2];
    uint32_t* const words = to.codes[row % 8 * 4 + lane / 4] + block % 2 * 2;
    auto* const bytes = reinterpret_cast<unsigned char*>(words) + lane % 4;
    bytes[0] = static_cast<unsigned char>(code_low);
    bytes[4] = static_cast<unsigned char>(code_high);
    if (lane != 0) return;
    Q8Fragments::Sums& sums = to.sums[block % 2][row % 8 / 2];
    sums.scale[row % 2] = scale;
    sums.halves[row % 2] = (static_cast<uint32_t>(sum_low) & 0xffffu) |
                           static_cast<uint32_t>(sum_high) << 16;
  }

  static TIERCEL_DEVICE float CodeOf(float value, float scale) {
    return std::fmin(std::fmax(std::nearbyint(value / scale), -127.0f), 127.0f);
  }

  // The sum of the squared errors of a half warp. Each of its lanes gets it.
  static TIERCEL_DEVICE float RoundingError(float low, float high,
                                            float scale) {
    const float a = std::fma(-scale, CodeOf(low, scale), low);
    const float b = std::fma(-scale, CodeOf(high, scale), high);
    float error = std::fma(b, b, a * a);
    for (int half = kLanes / 2; half > 0; half /= 2) {
      error += ShuffleDown(kAllLanes, error, half, kLanes);
    }
    return Shuffle(kAllLanes, error, 0, kLanes);
  }
};

// Half a warp takes one block, of x or of a gate and its partner.
template <bool kGate>
struct QuantiseBlocks {
  static constexpr int kMaxThreads = 128;
  struct Shared {};
  Q8Rows rows;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared&) const {
    const int64_t item = (t.block * t.count + t.index) / Q8Rows::kLanes;
    const int64_t row = item / (2 * rows.pairs);
    const int64_t block = item % (2 * rows.pairs);
    float low = 0.0f;
    float high = 0.0f;
    if (rows.Has(row, block)) {
      const int64_t i = block * 32 + t.lane() % Q8Rows::kLanes;
      low = At(row, i);
      high = At(row, i + Q8Rows::kLanes);
    }
    rows.Put(t, row, block, low, high);
  }

  TIERCEL_DEVICE float At(int64_t row, int64_t i) const {
    const float x = rows.in.x[row * rows.in.x_stride + i];
    if constexpr (kGate) return SwigluOf(x, rows.in.up[row * rows.in.k + i]);
    return x;
  }
};

// A block of the GPU norms one row, and then quantises it.
struct QuantiseNormed {
  static constexpr int kMaxThreads = 1024;
  static constexpr int kBlocksAtOnce = 1;  // or nvcc spills for more
  struct Shared {
    BlockSums sums;
  };
  Q8Rows rows;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& shared) const {
    const int64_t row = t.block;
    const float* const x = rows.in.x + row * rows.in.x_stride;
    float factor = 0.0f;
    if (row < rows.in.rows) {
      factor = NormFactor(t, x, static_cast<int>(rows.in.k), rows.in.eps,
                          shared.sums);
    }
    const int at_once = t.count / Q8Rows::kLanes;
    for (int64_t first = 0; first < 2 * rows.pairs; first += at_once) {
      const int64_t block = first + t.index / Q8Rows::kLanes;
      float low = 0.0f;
      float high = 0.0f;
      if (rows.Has(row, block)) {
        const int64_t i = block * 32 + t.lane() % Q8Rows::kLanes;
        low = x[i] * factor * rows.in.norm[i];
        high =
            x[i + Q8Rows::kLanes] * factor * rows.in.norm[i + Q8Rows::kLanes];
      }
      rows.Put(t, row, block, low, high);
    }
  }
};

template <bool kGate>
int LaunchBlocks(CUstream_st* stream, const Q8Rows& rows) {
  using Kernel = QuantiseBlocks<kGate>;
  constexpr int kAtOnce = Kernel::kMaxThreads / Q8Rows::kLanes;
  return Launch(stream,
                {.blocks = CeilDiv(rows.all_rows * 2 * rows.pairs, kAtOnce),
                 .threads = Kernel::kMaxThreads},
                Kernel{rows});
}

}  // namespace

TIERCEL_KERNEL_BODY(QuantiseCuda, CUstream_st* stream, const Activations& x,
                    Q8Fragments* out) {
  const Q8Rows rows = {x, CeilDiv(x.k / 32, 2), CeilDiv(x.rows, 8) * 8, out};
  if (x.up != nullptr) return LaunchBlocks<true>(stream, rows);
  if (x.norm == nullptr) return LaunchBlocks<false>(stream, rows);
  // A pair of blocks is a warp.
  constexpr int kMost = QuantiseNormed::kMaxThreads / kWarpLanes;
  const int warps = rows.pairs < kMost ? static_cast<int>(rows.pairs) : kMost;
  return Launch(stream,
                {.blocks = rows.all_rows, .threads = warps * kWarpLanes},
                QuantiseNormed{rows});
}

}  // namespace tiercel
