#include "kernels/attention/chunk_scores.h"

#include "absl/strings/str_cat.h"
#include "kernels/attention/chunk_scores_body.h"
#include "kernels/attention/mean_scores.h"
#include "kernels/base/error.h"

namespace tiercel {
namespace {

constexpr PerIsa<ChunkWeightsFn*> kWeights = {
    portable::ComputeChunkWeights, avx2::ComputeChunkWeights,
    avx512::ComputeChunkWeights, avx512::ComputeChunkWeights};

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
  const int group = p.heads / p.kv_heads;
  const int64_t stride = (p.num_chunks + 15) / 16 * 16;
  absl::StatusOr<std::byte*> scratch =
      stream.Scratch(static_cast<size_t>(p.heads * stride) * sizeof(float));
  if (!scratch.ok()) return scratch.status();
  auto* const score = reinterpret_cast<float*>(*scratch);
  if (absl::Status s = MeanScores(stream, {.q = p.q,
                                           .heads = p.heads,
                                           .kv_heads = p.kv_heads,
                                           .head_dim = p.head_dim,
                                           .scale = p.scale,
                                           .means = p.means,
                                           .means_stride = p.means_stride,
                                           .num_chunks = p.num_chunks,
                                           .out = score,
                                           .out_stride = stride});
      !s.ok()) {
    return s;
  }
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
