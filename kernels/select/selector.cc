#include "kernels/select/selector.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/op.h"
#include "kernels/device/stream.h"
#include "kernels/select/selector_body.h"
#include "kernels/select/top_k.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

constexpr PerIsa<AgePriorFn*> kAgePrior = {
    portable::ComputeAgePrior, avx2::ComputeAgePrior, avx512::ComputeAgePrior,
    avx512::ComputeAgePrior};
constexpr PerIsa<HeadChoiceFn*> kHeadChoice = {
    portable::ComputeHeadChoice, avx2::ComputeHeadChoice,
    avx512::ComputeHeadChoice, avx512::ComputeHeadChoice};
constexpr PerIsa<HeadRivalsFn*> kHeadRivals = {
    portable::ComputeHeadRivals, avx2::ComputeHeadRivals,
    avx512::ComputeHeadRivals, avx512::ComputeHeadRivals};

constexpr int64_t kSelectorLanes = 16;

absl::Status Validate(const SelectParams& p) {
  constexpr int64_t kMaxCandidates = int64_t{1} << 24;  // exact in float
  if (p.kv_heads <= 0 || p.candidates < 0 || p.candidates > kMaxCandidates ||
      p.norms_stride < p.candidates || p.importance_stride < p.candidates ||
      p.budget < 0 || p.reach < 0) {
    return UsageError(
        "invalid_sizes",
        absl::StrCat("Select: kv_heads=", p.kv_heads, ", candidates=",
                     p.candidates, ", norms_stride=", p.norms_stride,
                     ", importance_stride=", p.importance_stride,
                     ", budget=", p.budget, ", reach=", p.reach,
                     "; need kv_heads positive, candidates in 0 to 2^24, "
                     "both strides >= candidates, budget and reach >= 0"));
  }
  const bool mixes = p.most_prior >= 0.0f && p.most_prior <= 1.0f;
  constexpr float kMaxStrength = 1e6f;
  if (!mixes || !(p.suppression >= -1.0f && p.suppression <= kMaxStrength) ||
      !(p.exclusivity >= 0.0f && p.exclusivity <= kMaxStrength)) {
    return UsageError(
        "invalid_argument",
        absl::StrCat("Select: most_prior=", p.most_prior, ", suppression=",
                     p.suppression, ", exclusivity=", p.exclusivity,
                     "; need most_prior in 0 to 1, suppression in -1 to 10^6, "
                     "exclusivity in 0 to 10^6"));
  }
  return absl::OkStatus();
}

int64_t Kept(const SelectParams& p) { return std::min(p.budget, p.candidates); }

// The candidates of a KV head with those that fill the last lanes.
int64_t Stride(const SelectParams& p) {
  return (p.candidates + kSelectorLanes - 1) / kSelectorLanes * kSelectorLanes;
}

absl::Status OnGpu(Stream& stream, const SelectParams& p) {
  ASSIGN_OR_RETURN(
      const DevicePtr<std::byte> scratch,
      stream.Scratch(static_cast<size_t>(2 * p.kv_heads * Stride(p)) *
                     sizeof(float)));
  return CudaStatus("Select", SelectCuda(stream.queue().handle(), p, Stride(p),
                                         scratch.As<float>()));
}

absl::Status OnCpu(Stream& stream, const SelectParams& p) {
  const int64_t kept = Kept(p);
  const int64_t stride = Stride(p);
  const int64_t reach = std::min(p.reach, p.candidates - 1);
  const int64_t window = p.candidates + 4 * reach + 48;
  ASSIGN_OR_RETURN(
      const DevicePtr<std::byte> scratch,
      stream.Scratch(static_cast<size_t>((p.kv_heads + 1) * stride +
                                         stream.pool().num_threads() * window) *
                     sizeof(float)));
  float* const t = scratch.As<float>().raw();
  float* const prior = t + p.kv_heads * stride;
  float* const windows = prior + stride;

  constexpr int64_t kTile = 64 * kSelectorLanes;
  stream.pool().ParallelFor(
      stride, kTile, [&](int64_t begin, int64_t end, int) {
        kAgePrior[stream.isa()]({p.candidates, begin, end, prior});
      });
  stream.pool().ParallelFor(
      p.kv_heads, 1, [&](int64_t begin, int64_t end, int thread) {
        for (int64_t head = begin; head < end; ++head) {
          kHeadChoice[stream.isa()](
              {p.importance.raw() + head * p.importance_stride,
               p.norms.raw() + head * p.norms_stride, prior, p.candidates,
               p.most_prior, reach, p.suppression, t + head * stride,
               windows + thread * window});
        }
      });
  stream.pool().ParallelFor(
      stride, kTile, [&](int64_t begin, int64_t end, int) {
        kHeadRivals[stream.isa()](
            {t, stride, p.kv_heads, p.exclusivity, begin, end});
      });
  stream.pool().ParallelFor(
      p.kv_heads, 1, [&](int64_t begin, int64_t end, int thread) {
        for (int64_t head = begin; head < end; ++head) {
          KeepGreatest(t + head * stride, p.candidates, kept, /*first=*/0,
                       windows + thread * window, p.out.raw() + head * kept);
        }
      });
  return absl::OkStatus();
}

constexpr OpBodies<SelectParams> kSelect = {
    .reference = PlainBody<SelectReference>, .cpu = OnCpu, .gpu = OnGpu};

}  // namespace

absl::Status Select(Stream& stream, const SelectParams& p) {
  RETURN_IF_ERROR(Validate(p));
  if (Kept(p) == 0) return absl::OkStatus();
  return Run(kSelect, stream, p);
}

}  // namespace tiercel
