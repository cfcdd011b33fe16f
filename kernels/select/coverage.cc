#include "kernels/select/coverage.h"

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/op.h"
#include "kernels/device/stream.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

// VNNI has no body of its own, as it has no instructions for floats.
constexpr PerIsa<ExponentiatePositionsFn*> kExponentiatePositions = {
    portable::ExponentiatePositions, avx2::ExponentiatePositions,
    avx512::ExponentiatePositions, avx512::ExponentiatePositions};

absl::Status Validate(const CoverageParams& p) {
  if (p.heads <= 0 || p.kv_heads <= 0 || p.heads % p.kv_heads != 0) {
    return UsageError(
        "invalid_sizes",
        absl::StrCat("Coverage: heads=", p.heads, ", kv_heads=", p.kv_heads,
                     "; need heads a positive multiple of kv_heads"));
  }
  if (p.positions < 1 || p.scores_stride < p.positions || p.num_kept < 0) {
    return UsageError(
        "invalid_sizes",
        absl::StrCat("Coverage: positions=", p.positions, ", scores_stride=",
                     p.scores_stride, ", num_kept=", p.num_kept,
                     "; need positions >= 1, a stride no less and num_kept >= "
                     "0"));
  }
  bool kept = p.newest >= 0 && p.newest <= p.positions;
  for (int g = 0; g < p.kv_heads; ++g) {
    kept =
        kept && std::all_of(p.kept[g], p.kept[g] + p.num_kept,
                            [&](int32_t j) { return 0 <= j && j < p.newest; });
  }
  if (kept) return absl::OkStatus();
  return UsageError(
      "invalid_position",
      absl::StrCat("Coverage: newest=", p.newest, ", positions=", p.positions,
                   "; need 0 to positions, and kept positions "
                   "before it"));
}

absl::Status OnGpu(Stream& stream, const CoverageParams& p) {
  std::vector<int32_t> kept;
  for (int g = 0; g < p.kv_heads; ++g) {
    kept.insert(kept.end(), p.kept[g], p.kept[g] + p.num_kept);
  }
  ASSIGN_OR_RETURN(const DevicePtr<const int32_t> sent,
                   SendToScratch(stream, kept.data(), std::ssize(kept)));
  return CudaStatus("Coverage", CoverageCuda(stream.queue().handle(), p, sent));
}

absl::Status OnCpu(Stream& stream, const CoverageParams& p) {
  const int group = p.heads / p.kv_heads;
  stream.pool().ParallelFor(p.heads, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t h = begin; h < end; ++h) {
      float* const scores = p.scores.raw() + h * p.scores_stride;
      const HeadSums sums =
          kExponentiatePositions[stream.isa()](scores, p.positions, p.newest);
      p.out.raw()[h] = CoverageOf(sums, scores, p.kept[h / group], p.num_kept);
    }
  });
  return absl::OkStatus();
}

void Keep(CoverageParams& p, HostLists& lists) {
  const int32_t** const kept = lists.Keep(p.kept, p.kv_heads);
  for (int g = 0; g < p.kv_heads; ++g) {
    kept[g] = lists.Keep(kept[g], p.num_kept);
  }
  p.kept = kept;
}

constexpr OpBodies<CoverageParams> kCoverage = {
    .reference = PlainBody<CoverageReference>,
    .cpu = OnCpu,
    .gpu = OnGpu,
    .keep = Keep};

}  // namespace

absl::Status Coverage(Stream& stream, const CoverageParams& p) {
  RETURN_IF_ERROR(Validate(p));
  return Run(kCoverage, stream, p);
}

}  // namespace tiercel
