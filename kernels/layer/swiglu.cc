#include "kernels/layer/swiglu.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/op.h"
#include "kernels/number/reference_math.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

void SwigluRangeReference(const float* gate, const float* up, int64_t n,
                          float* out) {
  for (int64_t i = 0; i < n; ++i) {
    const float x = -gate[i] > 88.0f ? 88.0f : -gate[i];
    out[i] = gate[i] / (1.0f + ExpLane(x)) * up[i];
  }
}

namespace {

constexpr PerIsa<SwigluRangeFn*> kRange = {
    portable::SwigluRange, avx2::SwigluRange, avx512::SwigluRange,
    avx512vnni::SwigluRange};

absl::Status Validate(const SwigluParams& p) {
  if (p.rows < 0 || p.dim <= 0 ||
      p.rows > std::numeric_limits<int64_t>::max() / p.dim) {
    return UsageError("invalid_sizes",
                      absl::StrCat("Swiglu: rows=", p.rows, ", dim=", p.dim,
                                   "; need rows >= 0 and dim positive"));
  }
  return absl::OkStatus();
}

absl::Status OnCpu(Stream& stream, const SwigluParams& p,
                   SwigluRangeFn* range) {
  constexpr int64_t kGrain = 4096;  // some microseconds
  stream.pool().ParallelFor(p.rows * p.dim, kGrain,
                            [&](int64_t begin, int64_t end, int) {
                              range(p.gate.raw() + begin, p.up.raw() + begin,
                                    end - begin, p.out.raw() + begin);
                            });
  return absl::OkStatus();
}

constexpr OpBodies<SwigluParams> kSwiglu = {
    .reference =
        [](Stream& stream, const SwigluParams& p) {
          return OnCpu(stream, p, SwigluRangeReference);
        },
    .cpu =
        [](Stream& stream, const SwigluParams& p) {
          return OnCpu(stream, p, kRange[stream.isa()]);
        },
    .gpu =
        [](Stream& stream, const SwigluParams& p) {
          return CudaStatus(
              "Swiglu", SwigluCuda(stream.queue().handle(), p.gate.raw(),
                                   p.up.raw(), p.rows * p.dim, p.out.raw()));
        }};

}  // namespace

absl::Status Swiglu(Stream& stream, const SwigluParams& p) {
  RETURN_IF_ERROR(Validate(p));
  return Run(kSwiglu, stream, p);
}

}  // namespace tiercel
