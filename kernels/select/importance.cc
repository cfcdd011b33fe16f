#include "kernels/select/importance.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/op.h"
#include "kernels/device/stream.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

constexpr PerIsa<RootWeightsFn*> kWeighRoots = {
    portable::WeighRoots, avx2::WeighRoots, avx512::WeighRoots,
    avx512::WeighRoots};
constexpr PerIsa<AddRootsFn*> kAddRoots = {portable::AddRoots, avx2::AddRoots,
                                           avx512::AddRoots, avx512::AddRoots};

absl::Status Validate(const ImportanceParams& p) {
  constexpr int64_t kMaxRows = int64_t{1} << 28;
  constexpr int64_t kMaxCandidates = int64_t{1} << 28;
  if (p.heads <= 0 || p.kv_heads <= 0 || p.heads % p.kv_heads != 0) {
    return UsageError(
        "invalid_sizes",
        absl::StrCat("AddImportance: heads=", p.heads,
                     ", kv_heads=", p.kv_heads,
                     "; need heads a positive multiple of kv_heads"));
  }
  if (p.rows < 0 || p.rows > kMaxRows || p.candidates < 0 ||
      p.candidates > kMaxCandidates) {
    return UsageError("invalid_sizes",
                      absl::StrCat("AddImportance: rows=", p.rows,
                                   ", candidates=", p.candidates,
                                   "; need both in 0 to 2^28"));
  }
  if (p.scores_stride < p.candidates) {
    return UsageError(
        "invalid_sizes",
        absl::StrCat("AddImportance: scores_stride=", p.scores_stride,
                     ", candidates=", p.candidates, "; need no less"));
  }
  if (p.importance_stride < p.candidates) {
    return UsageError(
        "invalid_sizes",
        absl::StrCat("AddImportance: importance_stride=", p.importance_stride,
                     ", candidates=", p.candidates, "; need no less"));
  }
  constexpr float kMaxDecay = 0x1p20f;
  if (!(p.decay >= 0.0f && p.decay <= kMaxDecay)) {
    return UsageError(
        "invalid_argument",
        absl::StrCat("AddImportance: decay=", p.decay, "; need 0 to 2^20"));
  }
  return absl::OkStatus();
}

// Scratch memory for the weights of all queries.
absl::StatusOr<DevicePtr<RootWeights>> Weights(Stream& stream,
                                               const ImportanceParams& p) {
  ASSIGN_OR_RETURN(const DevicePtr<std::byte> scratch,
                   stream.Scratch(static_cast<size_t>(p.rows * p.heads) *
                                  sizeof(RootWeights)));
  return scratch.As<RootWeights>();
}

absl::Status OnGpu(Stream& stream, const ImportanceParams& p) {
  ASSIGN_OR_RETURN(const DevicePtr<RootWeights> weights, Weights(stream, p));
  return CudaStatus("AddImportance",
                    AddImportanceCuda(stream.queue().handle(), p, weights));
}

absl::Status OnCpu(Stream& stream, const ImportanceParams& p) {
  ASSIGN_OR_RETURN(const DevicePtr<RootWeights> scratch, Weights(stream, p));
  RootWeights* const weights = scratch.raw();
  const int64_t queries = p.rows * p.heads;
  stream.pool().ParallelFor(queries, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      weights[i] = kWeighRoots[stream.isa()](
          p.scores.raw() + i * p.scores_stride, p.candidates);
    }
  });

  const int group = p.heads / p.kv_heads;
  constexpr int64_t kTile = 4096;  // candidates whose sums stay in the cache
  const int64_t tiles = (p.candidates + kTile - 1) / kTile;
  stream.pool().ParallelFor(
      p.kv_heads * tiles, 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t item = begin; item < end; ++item) {
          const int64_t kv_head = item / tiles;
          const int64_t first = item % tiles * kTile;
          const int64_t size = std::min(kTile, p.candidates - first);
          const int64_t at = kv_head * p.importance_stride + first;
          const float* const before = p.before.raw() + at;
          float* const importance = p.importance.raw() + at;
          for (int64_t j = 0; j < size; ++j)
            importance[j] = before[j] * p.decay;
          for (int64_t i = 0; i < p.rows * group; ++i) {
            const int64_t query =
                i / group * p.heads + kv_head * group + i % group;
            if (weights[query].length == 0.0f) continue;
            kAddRoots[stream.isa()](
                p.scores.raw() + query * p.scores_stride + first, size,
                weights[query], importance);
          }
        }
      });
  return absl::OkStatus();
}

constexpr OpBodies<ImportanceParams> kAddImportance = {
    .reference = PlainBody<AddImportanceReference>, .cpu = OnCpu, .gpu = OnGpu};

}  // namespace

absl::Status AddImportance(Stream& stream, const ImportanceParams& p) {
  RETURN_IF_ERROR(Validate(p));
  if (p.candidates == 0) return absl::OkStatus();
  return Run(kAddImportance, stream, p);
}

}  // namespace tiercel
