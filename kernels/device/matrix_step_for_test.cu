// Bytes: 40 a lane, and 16 back.
// Operations: 8,192 int8 a warp.
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

}  // namespace

int MatrixSteps(CUstream_st* stream, DevicePtr<MatrixStepLane> lanes,
                int64_t warps) {
  return Launch(stream, {.blocks = warps, .threads = kWarpLanes},
                Step{lanes.raw()});
}

}  // namespace tiercel
