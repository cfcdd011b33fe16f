#include "kernels/select/mean_scores.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/op.h"
#include "kernels/device/stream.h"
#include "kernels/number/half.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

void MeanScoresReference(const MeanScoresParams& p) {
  const int group = p.heads / p.kv_heads;
  for (int h = 0; h < p.heads; ++h) {
    const float* const q = p.q.raw() + int64_t{h} * p.head_dim;
    for (int64_t c = 0; c < p.num_chunks; ++c) {
      const uint16_t* const mean =
          p.means.raw() + h / group * p.means_stride + c * p.head_dim;
      float dot = 0.0f;
      for (int d = 0; d < p.head_dim; ++d) {
        dot = std::fma(q[d], F32FromF16(mean[d]), dot);
      }
      p.out.raw()[h * p.out_stride + c] = dot * p.scale;
    }
  }
}

namespace {

constexpr int64_t kLanes = 16;

// VNNI has no body of its own, as it has no instructions for floats.
constexpr PerIsa<MeanDotsFn*> kDots = {
    portable::ComputeMeanDots, avx2::ComputeMeanDots, avx512::ComputeMeanDots,
    avx512::ComputeMeanDots};

absl::Status CheckOut(const MeanScoresParams& p) {
  if (p.out_stride % kLanes != 0 || p.out_stride < p.num_chunks) {
    return UsageError(
        "invalid_sizes",
        absl::StrCat("MeanScores: out_stride=", p.out_stride,
                     ", num_chunks=", p.num_chunks, "; need a multiple of ",
                     kLanes, " that is no less than num_chunks"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckMeans(std::string_view op, const MeanScoresParams& p) {
  if (p.heads <= 0 || p.kv_heads <= 0 || p.heads % p.kv_heads != 0) {
    return UsageError(
        "invalid_sizes",
        absl::StrCat(std::string(op), ": heads=", p.heads,
                     ", kv_heads=", p.kv_heads,
                     "; need heads a positive multiple of kv_heads"));
  }
  if (p.head_dim <= 0 || p.head_dim % 8 != 0) {
    return UsageError("invalid_sizes",
                      absl::StrCat(std::string(op), ": head_dim=", p.head_dim,
                                   "; need a positive multiple of 8"));
  }
  constexpr int64_t kMaxChunks = int64_t{1} << 28;
  if (p.num_chunks < 0 || p.num_chunks > kMaxChunks ||
      p.means_stride < p.num_chunks * p.head_dim) {
    return UsageError(
        "invalid_sizes",
        absl::StrCat(std::string(op), ": num_chunks=", p.num_chunks,
                     ", means_stride=", p.means_stride,
                     ", head_dim=", p.head_dim,
                     "; need num_chunks in 0 to 2^28 and means_stride >= "
                     "num_chunks * head_dim"));
  }
  return absl::OkStatus();
}

namespace {

absl::Status OnCpu(Stream& stream, const MeanScoresParams& p) {
  const int group = p.heads / p.kv_heads;
  // An item has about 32K elements, which take some microseconds.
  const int64_t tile =
      std::max<int64_t>(1, (int64_t{1} << 15) / (kLanes * p.head_dim)) * kLanes;
  const int64_t tiles = (p.num_chunks + tile - 1) / tile;
  stream.pool().ParallelFor(
      p.kv_heads * tiles, 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t item = begin; item < end; ++item) {
          const int64_t kv_head = item / tiles;
          const int64_t chunk = item % tiles * tile;
          kDots[stream.isa()](
              {.q = p.q.raw() + kv_head * group * p.head_dim,
               .group = group,
               .head_dim = p.head_dim,
               .scale = p.scale,
               .means = p.means.raw() + kv_head * p.means_stride +
                        chunk * p.head_dim,
               .chunks = std::min(tile, p.num_chunks - chunk),
               .score = p.out.raw() + kv_head * group * p.out_stride + chunk,
               .stride = p.out_stride});
        }
      });
  return absl::OkStatus();
}

constexpr OpBodies<MeanScoresParams> kMeanScores = {
    .reference = PlainBody<MeanScoresReference>,
    .cpu = OnCpu,
    .gpu = [](Stream& stream, const MeanScoresParams& p) {
      return CudaStatus("MeanScores",
                        MeanScoresCuda(stream.queue().handle(), p));
    }};

}  // namespace

absl::Status MeanScores(Stream& stream, const MeanScoresParams& p) {
  RETURN_IF_ERROR(CheckMeans("MeanScores", p));
  RETURN_IF_ERROR(CheckOut(p));
  if (p.num_chunks == 0) return absl::OkStatus();
  return Run(kMeanScores, stream, p);
}

}  // namespace tiercel
