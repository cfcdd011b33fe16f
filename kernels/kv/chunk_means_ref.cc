#include <algorithm>
#include <cmath>

#include "kernels/kv/chunk_means.h"
#include "kernels/kv/kv_row.h"
#include "kernels/number/half.h"

namespace tiercel {
namespace {

// The elements of a row that are summed at a time: a whole block of every type.
constexpr int kPiece = 32;

// Computes the mean of `rows` rows of keys, `n` elements from element d on.
void MeanOfPiece(const KvLayout& kv, const std::byte* keys, int64_t rows, int d,
                 int n, uint16_t* out) {
  float sum[kPiece] = {};
  for (int64_t row = 0; row < rows; ++row) {
    float piece[kPiece];
    KvRowToF32(kv.type_k, keys + row * kv.KRowBytes() + RowBytes(kv.type_k, d),
               n, piece);
    for (int i = 0; i < n; ++i) sum[i] += piece[i];
  }
  const auto count = static_cast<float>(rows);
  for (int i = 0; i < n; ++i) out[i] = F16FromF32(sum[i] / count);
}

uint16_t NormOf(const uint16_t* mean, int head_dim) {
  float sum = 0.0f;
  for (int d = 0; d < head_dim; ++d) {
    const float x = F32FromF16(mean[d]);
    sum = std::fma(x, x, sum);
  }
  return F16FromF32(std::sqrt(sum));
}

}  // namespace

void ChunkMeansReference(const ChunkMeansParams& p, int64_t begin,
                         int64_t end) {
  const KvLayout& kv = p.layout;
  for (int64_t item = begin; item < end; ++item) {
    const auto head = static_cast<int>(item / p.num_chunks);
    const int64_t index = item % p.num_chunks;
    const int64_t start = (p.first_chunk + index) * p.chunk;
    const int64_t first = std::max(start, p.begin);
    const int64_t rows = start + p.chunk - first;
    const std::byte* const keys =
        p.pages[start / kPageTokens - p.first_page].raw() +
        kv.KOffset(head, static_cast<int>(first % kPageTokens));
    uint16_t* const out =
        p.out.raw() + head * p.out_stride + index * kv.head_dim;
    for (int d = 0; d < kv.head_dim; d += kPiece) {
      MeanOfPiece(kv, keys, rows, d, std::min(kPiece, kv.head_dim - d),
                  out + d);
    }
    if (p.norms != nullptr) {
      p.norms.raw()[head * p.norms_stride + index] = NormOf(out, kv.head_dim);
    }
  }
}

}  // namespace tiercel
