#include "kernels/attention/chunk_scores.h"

#include "absl/status/status.h"
#include "kernels/attention/chunk_scores_body.h"
#include "kernels/attention/mean_scores.h"
#include "kernels/machine/cuda_stream.h"
#include "kernels/machine/stream.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

constexpr PerIsa<ChunkWeightsFn*> kWeights = {
    portable::ComputeChunkWeights, avx2::ComputeChunkWeights,
    avx512::ComputeChunkWeights, avx512::ComputeChunkWeights};

}  // namespace

absl::Status ChunkScores(Stream& stream, const ChunkScoresParams& p) {
  MeanScoresParams scores = ScoresOf(p);
  RETURN_IF_ERROR(CheckMeans("ChunkScores", scores));
  if (p.num_chunks == 0) return absl::OkStatus();
  if (stream.device() == Device::kRef) {
    ChunkScoresReference(p);
    return absl::OkStatus();
  }
  const int64_t stride = scores.out_stride;
  ASSIGN_OR_RETURN(
      std::byte * scratch,
      stream.Scratch(static_cast<size_t>(p.heads * stride) * sizeof(float)));
  scores.out = reinterpret_cast<float*>(scratch);
  RETURN_IF_ERROR(MeanScores(stream, scores));
  const int group = p.heads / p.kv_heads;
  if (stream.device() == Device::kCuda) {
    const ChunkWeights all = {scores.out, stride, group, p.num_chunks, p.out};
    return CudaStatus("ChunkScores", ChunkWeightsCuda(stream.cuda().handle(),
                                                      all, p.kv_heads));
  }
  stream.pool().ParallelFor(
      p.kv_heads, 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t kv_head = begin; kv_head < end; ++kv_head) {
          kWeights[stream.isa()]({scores.out + kv_head * group * stride, stride,
                                  group, p.num_chunks,
                                  p.out + kv_head * p.num_chunks});
        }
      });
  return absl::OkStatus();
}

}  // namespace tiercel
