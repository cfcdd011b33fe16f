#include "kernels/layer/swiglu.h"
#include "kernels/number/reference_math.h"

namespace tiercel {

void SwigluRangeReference(const float* gate, const float* up, int64_t n,
                          float* out) {
  for (int64_t i = 0; i < n; ++i) {
    const float x = -gate[i] > 88.0f ? 88.0f : -gate[i];
    out[i] = gate[i] / (1.0f + ExpLane(x)) * up[i];
  }
}

}  // namespace tiercel
