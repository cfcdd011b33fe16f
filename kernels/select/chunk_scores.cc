#include "kernels/select/chunk_scores.h"

#include "absl/status/status.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/op.h"
#include "kernels/device/stream.h"
#include "kernels/select/mean_scores.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

constexpr PerIsa<ChunkWeightsFn*> kWeights = {
    portable::ComputeChunkWeights, avx2::ComputeChunkWeights,
    avx512::ComputeChunkWeights, avx512::ComputeChunkWeights};

// The scores of all query heads, in scratch memory.
absl::StatusOr<MeanScoresParams> Score(Stream& stream,
                                       const ChunkScoresParams& p) {
  MeanScoresParams scores = ScoresOf(p);
  ASSIGN_OR_RETURN(
      const DevicePtr<std::byte> scratch,
      stream.Scratch(static_cast<size_t>(p.heads * scores.out_stride) *
                     sizeof(float)));
  scores.out = scratch.As<float>();
  RETURN_IF_ERROR(MeanScores(stream, scores));
  return scores;
}

absl::Status OnGpu(Stream& stream, const ChunkScoresParams& p) {
  ASSIGN_OR_RETURN(const MeanScoresParams scores, Score(stream, p));
  const ChunkWeights all = {scores.out.raw(), scores.out_stride,
                            p.heads / p.kv_heads, p.num_chunks, p.out.raw()};
  return CudaStatus("ChunkScores",
                    ChunkWeightsCuda(stream.queue().handle(), all, p.kv_heads));
}

absl::Status OnCpu(Stream& stream, const ChunkScoresParams& p) {
  ASSIGN_OR_RETURN(const MeanScoresParams scores, Score(stream, p));
  const int group = p.heads / p.kv_heads;
  const int64_t stride = scores.out_stride;
  stream.pool().ParallelFor(
      p.kv_heads, 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t kv_head = begin; kv_head < end; ++kv_head) {
          kWeights[stream.isa()]({scores.out.raw() + kv_head * group * stride,
                                  stride, group, p.num_chunks,
                                  p.out.raw() + kv_head * p.num_chunks});
        }
      });
  return absl::OkStatus();
}

constexpr OpBodies<ChunkScoresParams> kChunkScores = {
    .reference = PlainBody<ChunkScoresReference>, .cpu = OnCpu, .gpu = OnGpu};

}  // namespace

absl::Status ChunkScores(Stream& stream, const ChunkScoresParams& p) {
  RETURN_IF_ERROR(CheckMeans("ChunkScores", ScoresOf(p)));
  if (p.num_chunks == 0) return absl::OkStatus();
  return Run(kChunkScores, stream, p);
}

}  // namespace tiercel
