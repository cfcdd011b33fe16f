// Bytes: 40 or 64 a lane, and 16 or 32 back.
// Operations: 8,192 int8 or f16 a warp.
// Bound by: the launch; it is for a test.

#include "kernels/device/device_lang.h"
#include "kernels/device/matrix_step_for_test.h"

namespace tiercel {
namespace {

struct Step {
  static constexpr int kMaxThreads = kWarpLanes;
  struct Shared {};
  MatrixStepLane* lanes;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared&) const {
    MatrixStepLane& lane = lanes[t.block * kWarpLanes + t.index];
    int32_t sums[4];
    uint32_t a[4];
    uint32_t b[2];
    for (int i = 0; i < 4; ++i) {
      sums[i] = lane.sums[i];
      a[i] = lane.a[i];
      b[i / 2] = lane.b[i / 2];
    }
    MmaS8(sums, a, b);
    for (int i = 0; i < 4; ++i) lane.sums[i] = sums[i];
  }
};

struct HalfStep {
  static constexpr int kMaxThreads = kWarpLanes;
  struct Shared {
    Array<uint16_t, 16 * 16> a;
    Array<uint16_t, 16 * 16> b;
  };
  HalfStepMatrices* problems;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& s) const {
    HalfStepMatrices& own = problems[t.block];
    for (int i = t.index; i < 16 * 16; i += kWarpLanes) {
      s.a[i] = own.a[i / 16][i % 16];
      s.b[i] = own.b[i / 16][i % 16];
    }
    WarpBarrier();
    // Matrix m has rows of its lower half if it is odd, and columns of the
    // right half from the third on.
    const int at = (t.lane() % 16) * 16 + t.lane() / 16 * 8;
    uint32_t a[4];
    uint32_t b[4];
    LoadMatrices(a, &s.a[at]);
    LoadTransposed(b, &s.b[at]);
    for (int half = 0; half < 2; ++half) {
      const auto place = [&](int i) -> float& {
        return own.sums[t.lane() / 4 + i / 2 * 8]
                       [8 * half + t.lane() % 4 * 2 + i % 2];
      };
      float sums[4];
      for (int i = 0; i < 4; ++i) sums[i] = place(i);
      MmaF16(sums, a, {b[2 * half], b[2 * half + 1]});
      for (int i = 0; i < 4; ++i) place(i) = sums[i];
    }
  }
};

}  // namespace

int MatrixSteps(CUstream_st* stream, DevicePtr<MatrixStepLane> lanes,
                int64_t warps) {
  return Launch(stream, {.blocks = warps, .threads = kWarpLanes},
                Step{lanes.raw()});
}

int HalfMatrixSteps(CUstream_st* stream, DevicePtr<HalfStepMatrices> problems,
                    int64_t count) {
  return Launch(stream, {.blocks = count, .threads = kWarpLanes},
                HalfStep{problems.raw()});
}

}  // namespace tiercel
