#include "kernels/layer/expert_sum.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/op.h"
#include "kernels/layer/gather_rows.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

void ExpertSumRowReference(const float* y, int64_t y_stride,
                           const int32_t* items, const float* shares, int used,
                           int64_t dim, float* out) {
  for (int64_t n = 0; n < dim; ++n) {
    float sum = 0.0f;
    for (int i = 0; i < used; ++i) {
      sum = std::fma(shares[i], y[items[i] * y_stride + n], sum);
    }
    out[n] += sum;
  }
}

namespace {

constexpr PerIsa<ExpertSumRowFn*> kRow = {
    portable::ExpertSumRow, avx2::ExpertSumRow, avx512::ExpertSumRow,
    avx512::ExpertSumRow};

absl::Status Validate(const ExpertSumParams& p) {
  if (p.rows < 0 || p.used < 1 || p.dim < 1 || p.y_stride < p.dim ||
      p.out_stride < p.dim) {
    return UsageError(
        "invalid_sizes",
        absl::StrCat("ExpertSum: rows=", p.rows, ", used=", p.used,
                     ", dim=", p.dim, ", y_stride=", p.y_stride,
                     ", out_stride=", p.out_stride,
                     "; need rows >= 0, used and dim positive, and strides of "
                     "dim at least"));
  }
  if (p.rows == 0) return absl::OkStatus();
  const char* const missing = p.y == nullptr        ? "y"
                              : p.items == nullptr  ? "items"
                              : p.shares == nullptr ? "shares"
                              : p.out == nullptr    ? "out"
                                                    : nullptr;
  if (missing != nullptr) {
    return UsageError("invalid_argument",
                      absl::StrCat("ExpertSum: ", missing, " is null"));
  }
  return CheckIndices("ExpertSum: items", p.items, p.rows * p.used,
                      p.num_items);
}

absl::Status OnHost(Stream& stream, const ExpertSumParams& p,
                    ExpertSumRowFn* row_of) {
  constexpr int64_t kWork = 32 << 10;  // multiply-adds that are worth a thread
  stream.pool().ParallelFor(
      p.rows, std::max<int64_t>(1, kWork / (p.used * p.dim)),
      [&](int64_t begin, int64_t end, int) {
        for (int64_t row = begin; row < end; ++row) {
          row_of(p.y.raw(), p.y_stride, p.items + row * p.used,
                 p.shares.raw() + row * p.used, p.used, p.dim,
                 p.out.raw() + row * p.out_stride);
        }
      });
  return absl::OkStatus();
}

absl::Status OnGpu(Stream& stream, const ExpertSumParams& p) {
  ASSIGN_OR_RETURN(const DevicePtr<const int32_t> items,
                   SendToScratch(stream, p.items, p.rows * p.used));
  ExpertSumParams there = p;
  there.items = items.raw();
  return CudaStatus("ExpertSum", ExpertSumCuda(stream.queue().handle(), there));
}

constexpr OpBodies<ExpertSumParams> kExpertSum = {
    .reference =
        [](Stream& stream, const ExpertSumParams& p) {
          return OnHost(stream, p, ExpertSumRowReference);
        },
    .cpu =
        [](Stream& stream, const ExpertSumParams& p) {
          return OnHost(stream, p, kRow[stream.isa()]);
        },
    .gpu = OnGpu,
    .keep =
        [](ExpertSumParams& p, HostLists& lists) {
          p.items = lists.Keep(p.items, p.rows * p.used);
        }};

}  // namespace

absl::Status ExpertSum(Stream& stream, const ExpertSumParams& p) {
  RETURN_IF_ERROR(Validate(p));
  if (p.rows == 0) return absl::OkStatus();
  return Run(kExpertSum, stream, p);
}

}  // namespace tiercel
