#include "kernels/kv/chunk_means.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/op.h"
#include "kernels/device/stream.h"
#include "kernels/kv/kv_row.h"
#include "kernels/kv/page_range.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

absl::Status Validate(const ChunkMeansParams& p) {
  const KvLayout& kv = p.layout;
  if (kv.kv_heads <= 0 || kv.head_dim <= 0 || p.chunk <= 0 ||
      kPageTokens % p.chunk != 0) {
    return UsageError(
        "invalid_sizes",
        absl::StrCat("ChunkMeans: kv_heads=", kv.kv_heads,
                     ", head_dim=", kv.head_dim, ", chunk=", p.chunk,
                     "; need heads and head_dim positive and chunk a divisor "
                     "of ",
                     kPageTokens));
  }
  // The stride is divided because the product could overflow.
  if (p.num_chunks < 0 || p.out_stride < 0 ||
      p.out_stride / kv.head_dim < p.num_chunks) {
    return UsageError(
        "invalid_sizes",
        absl::StrCat("ChunkMeans: num_chunks=", p.num_chunks,
                     ", out_stride=", p.out_stride, ", head_dim=", kv.head_dim,
                     "; need num_chunks >= 0 and out_stride >= num_chunks * "
                     "head_dim"));
  }
  if (p.norms != nullptr && p.norms_stride < p.num_chunks) {
    return UsageError(
        "invalid_sizes",
        absl::StrCat("ChunkMeans: norms_stride=", p.norms_stride,
                     ", num_chunks=", p.num_chunks, "; need no less"));
  }
  RETURN_IF_ERROR(CheckKvType("ChunkMeans", kv.type_k, kv.head_dim));
  constexpr int64_t kMaxChunk = (int64_t{1} << 48) / kPageTokens;
  if (p.begin < 0 || p.first_chunk < 0 || p.first_chunk > kMaxChunk ||
      p.num_chunks > kMaxChunk) {
    return UsageError(
        "invalid_position",
        absl::StrCat("ChunkMeans: begin=", p.begin, ", first_chunk=",
                     p.first_chunk, ", num_chunks=", p.num_chunks,
                     "; need begin and first_chunk >= 0, both counts of chunks "
                     "at most ",
                     kMaxChunk));
  }
  if (p.num_chunks == 0) return absl::OkStatus();
  if (p.begin / p.chunk > p.first_chunk) {
    return UsageError(
        "invalid_position",
        absl::StrCat("ChunkMeans: chunk ", p.first_chunk, " of ", p.chunk,
                     " positions lies before begin=", p.begin,
                     "; need chunks from ", p.begin / p.chunk, " on"));
  }
  const int64_t in_page = kPageTokens / p.chunk;
  return CheckPageRange("ChunkMeans", p.pages, p.first_page, p.num_pages,
                        p.first_chunk / in_page,
                        (p.first_chunk + p.num_chunks - 1) / in_page);
}

absl::Status OnGpu(Stream& stream, const ChunkMeansParams& p) {
  const int64_t in_page = kPageTokens / p.chunk;
  ASSIGN_OR_RETURN(const DevicePages pages,
                   SendPages(stream, p, p.first_chunk / in_page,
                             (p.first_chunk + p.num_chunks - 1) / in_page));
  return CudaStatus("ChunkMeans",
                    ChunkMeansCuda(stream.queue().handle(), p, pages));
}

absl::Status OnCpu(Stream& stream, const ChunkMeansParams& p) {
  // An item has about 16K elements, which take some microseconds.
  const int64_t grain =
      1 + (int64_t{1} << 14) / (int64_t{p.chunk} * p.layout.head_dim);
  stream.pool().ParallelFor(p.layout.kv_heads * p.num_chunks, grain,
                            [&](int64_t begin, int64_t end, int) {
                              ChunkMeansReference(p, begin, end);
                            });
  return absl::OkStatus();
}

constexpr OpBodies<ChunkMeansParams> kChunkMeans = {
    .reference = OnCpu,
    .cpu = OnCpu,
    .gpu = OnGpu,
    .keep = KeepPages<ChunkMeansParams>};

}  // namespace

absl::Status ChunkMeans(Stream& stream, const ChunkMeansParams& p) {
  RETURN_IF_ERROR(Validate(p));
  if (p.num_chunks == 0) return absl::OkStatus();
  return Run(kChunkMeans, stream, p);
}

}  // namespace tiercel
