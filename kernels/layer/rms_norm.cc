#include "kernels/layer/rms_norm.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/op.h"
#include "kernels/device/stream.h"
#include "kernels/number/reference_math.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

void RmsNormGroupReference(const float* x, const float* weight, float eps,
                           int dim, float* out) {
  float lane[16] = {};
  for (int i = 0; i < dim; ++i) {
    lane[i % 16] = std::fma(x[i], x[i], lane[i % 16]);
  }
  const float mean = SumLanes(lane) / static_cast<float>(dim);
  const float inverse = 1.0f / std::sqrt(mean + eps);
  for (int i = 0; i < dim; ++i) out[i] = x[i] * inverse * weight[i];
}

namespace {

constexpr PerIsa<RmsNormGroupFn*> kGroup = {
    portable::RmsNormGroup, avx2::RmsNormGroup, avx512::RmsNormGroup,
    avx512vnni::RmsNormGroup};

absl::Status Validate(const RmsNormParams& p) {
  const int64_t row = int64_t{p.groups} * p.dim;
  if (p.rows < 0 || p.groups <= 0 || p.dim <= 0 || p.x_stride < row ||
      p.out_stride < row) {
    return UsageError(
        "invalid_sizes",
        absl::StrCat("RmsNorm: rows=", p.rows, ", groups=", p.groups,
                     ", dim=", p.dim, ", x_stride=", p.x_stride,
                     ", out_stride=", p.out_stride,
                     "; need rows >= 0, groups and dim positive, strides of at "
                     "least groups * dim"));
  }
  if (!(p.eps > 0.0f)) {
    return UsageError("invalid_sizes",
                      absl::StrCat("RmsNorm: eps=", p.eps, "; need eps > 0"));
  }
  return absl::OkStatus();
}

absl::Status OnCpu(Stream& stream, const RmsNormParams& p,
                   RmsNormGroupFn* group) {
  // An item has about 16K elements, which take some microseconds.
  const int64_t grain = 1 + (int64_t{1} << 14) / (int64_t{p.groups} * p.dim);
  stream.pool().ParallelFor(
      p.rows, grain, [&](int64_t begin, int64_t end, int) {
        for (int64_t r = begin; r < end; ++r) {
          for (int64_t g = 0; g < p.groups; ++g) {
            group(p.x.raw() + r * p.x_stride + g * p.dim, p.weight.raw(), p.eps,
                  p.dim, p.out.raw() + r * p.out_stride + g * p.dim);
          }
        }
      });
  return absl::OkStatus();
}

constexpr OpBodies<RmsNormParams> kRmsNorm = {
    .reference =
        [](Stream& stream, const RmsNormParams& p) {
          return OnCpu(stream, p, RmsNormGroupReference);
        },
    .cpu =
        [](Stream& stream, const RmsNormParams& p) {
          return OnCpu(stream, p, kGroup[stream.isa()]);
        },
    .gpu =
        [](Stream& stream, const RmsNormParams& p) {
          return CudaStatus("RmsNorm", RmsNormCuda(stream.queue().handle(), p));
        }};

}  // namespace

absl::Status RmsNorm(Stream& stream, const RmsNormParams& p) {
  RETURN_IF_ERROR(Validate(p));
  return Run(kRmsNorm, stream, p);
}

}  // namespace tiercel
