#include "kernels/attention/chunk_scores.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/attention/chunk_scores_body.h"
#include "kernels/base/error.h"

namespace tiercel {
namespace {

constexpr PerIsa<ChunkDotsFn*> kDots = {
    portable::ComputeChunkDots, avx2::ComputeChunkDots,
    avx512::ComputeChunkDots, avx512vnni::ComputeChunkDots};
constexpr PerIsa<ChunkWeightsFn*> kWeights = {
    portable::ComputeChunkWeights, avx2::ComputeChunkWeights,
    avx512::ComputeChunkWeights, avx512vnni::ComputeChunkWeights};

absl::Status Validate(const ChunkScoresParams& p) {
  if (p.heads <= 0 || p.kv_heads <= 0 || p.heads % p.kv_heads != 0) {
    return UsageError(
        "invalid_shape",
        absl::StrCat("ChunkScores: heads=", p.heads, ", kv_heads=", p.kv_heads,
                     "; need heads a positive multiple of kv_heads"));
  }
  if (p.head_dim <= 0 || p.head_dim % 8 != 0) {
    return UsageError("invalid_shape",
                      absl::StrCat("ChunkScores: head_dim=", p.head_dim,
                                   "; need a positive multiple of 8"));
  }
  constexpr int64_t kMaxChunks = int64_t{1} << 28;
  if (p.num_chunks < 0 || p.num_chunks > kMaxChunks ||
      p.means_stride < p.num_chunks * p.head_dim) {
    return UsageError(
        "invalid_shape",
        absl::StrCat("ChunkScores: num_chunks=", p.num_chunks,
                     ", means_stride=", p.means_stride,
                     ", head_dim=", p.head_dim,
                     "; need num_chunks in 0 to 2^28 and means_stride >= "
                     "num_chunks * head_dim"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ChunkScores(Stream& stream, const ChunkScoresParams& p) {
  if (absl::Status s = stream.RequireHost("ChunkScores"); !s.ok()) return s;
  if (absl::Status s = Validate(p); !s.ok()) return s;
  if (p.num_chunks == 0) return absl::OkStatus();
  if (stream.device() == Device::kRef) {
    ChunkScoresReference(p);
    return absl::OkStatus();
  }
  constexpr int64_t kLanes = 16;
  const int group = p.heads / p.kv_heads;
  const int64_t stride = (p.num_chunks + kLanes - 1) / kLanes * kLanes;
  absl::StatusOr<std::byte*> scratch =
      stream.Scratch(static_cast<size_t>(p.heads * stride) * sizeof(float));
  if (!scratch.ok()) return scratch.status();
  auto* const score = reinterpret_cast<float*>(*scratch);

  // About 32K elements, some microseconds, make an item.
  const int64_t tile =
      std::max<int64_t>(1, (int64_t{1} << 15) / (kLanes * p.head_dim)) * kLanes;
  const int64_t tiles = (p.num_chunks + tile - 1) / tile;
  stream.pool().ParallelFor(
      p.kv_heads * tiles, 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t item = begin; item < end; ++item) {
          const int64_t kv_head = item / tiles;
          const int64_t chunk = item % tiles * tile;
          ChunkDots d;
          d.q = p.q + kv_head * group * p.head_dim;
          d.group = group;
          d.head_dim = p.head_dim;
          d.scale = p.scale;
          d.means = p.means + kv_head * p.means_stride + chunk * p.head_dim;
          d.chunks = std::min(tile, p.num_chunks - chunk);
          d.score = score + kv_head * group * stride + chunk;
          d.stride = stride;
          kDots[stream.isa()](d);
        }
      });
  stream.pool().ParallelFor(
      p.kv_heads, 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t kv_head = begin; kv_head < end; ++kv_head) {
          kWeights[stream.isa()]({score + kv_head * group * stride, stride,
                                  group, p.num_chunks,
                                  p.out + kv_head * p.num_chunks});
        }
      });
  return absl::OkStatus();
}

}  // namespace tiercel
