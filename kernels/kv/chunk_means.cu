// Bytes: the keys of a chunk once, and its digest written.
// Operations: 1 f32 an element of a key, and 4 of a digest.
// Bound by: memory.

#include <cmath>

#include "kernels/device/device_lang.h"
#include "kernels/kv/chunk_means.h"
#include "kernels/kv/kv_tile.h"

namespace tiercel {
namespace {

// A block sums the keys of one chunk of one KV head, one element per thread, so
// that neighbouring threads read neighbouring elements.
struct SumChunks {
  static constexpr int kMaxThreads = 128;
  static constexpr int kBlocksAtOnce = 4;
  struct Shared {};
  ChunkMeansParams p;
  DevicePages pages;
  int64_t k_row_bytes;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared&) const {
    const int64_t items = p.layout.kv_heads * p.num_chunks;
    for (int64_t item = t.block; item < items; item += t.blocks) {
      const int64_t head = item / p.num_chunks;
      const int64_t index = item % p.num_chunks;
      uint16_t* const out =
          p.out.raw() + head * p.out_stride + index * p.layout.head_dim;
      SumChunk(t, head, (p.first_chunk + index) * p.chunk, out);
      if (p.norms == nullptr) continue;
      Barrier();  // the whole digest is there
      if (t.index != 0) continue;
      p.norms.raw()[head * p.norms_stride + index] = NormOf(out);
    }
  }

  // Computes the digest of the chunk whose first position is `start`, over the
  // positions that exist.
  TIERCEL_DEVICE void SumChunk(const Thread& t, int64_t head, int64_t start,
                               uint16_t* out) const {
    const int64_t first = start > p.begin ? start : p.begin;
    const int64_t rows = start + p.chunk - first;
    const std::byte* const keys =
        pages.At(start / kPageTokens) +
        (head * kPageTokens + first % kPageTokens) * k_row_bytes;
    for (int d = t.index; d < p.layout.head_dim; d += t.count) {
      float sum = 0.0f;
      for (int64_t row = 0; row < rows; ++row) {
        sum += KvElement(p.layout.type_k, keys + row * k_row_bytes, d);
      }
      out[d] = F16FromF32(sum / static_cast<float>(rows));
    }
  }

  TIERCEL_DEVICE uint16_t NormOf(const uint16_t* mean) const {
    float sum = 0.0f;
    for (int d = 0; d < p.layout.head_dim; ++d) {
      const float x = F32FromF16(mean[d]);
      sum = std::fma(x, x, sum);
    }
    return F16FromF32(std::sqrt(sum));
  }
};

}  // namespace

TIERCEL_KERNEL_BODY(ChunkMeansCuda, CUstream_st* stream,
                    const ChunkMeansParams& p, const DevicePages& pages) {
  return Launch(
      stream,
      TurnsFor(p.layout.kv_heads * p.num_chunks, 1, SumChunks::kMaxThreads),
      SumChunks{p, pages, p.layout.KRowBytes()});
}

}  // namespace tiercel
