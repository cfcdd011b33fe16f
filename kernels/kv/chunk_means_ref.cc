#include <algorithm>

#include "kernels/kv/chunk_means_body.h"
#include "kernels/kv/kv_row.h"

namespace tiercel {
namespace {

// Elements of a row that become floats at a time: a whole block of every type.
constexpr int kPiece = 32;

// One row of keys onto the sums.
void AddRow(DType type, const std::byte* row, int head_dim, float* sum) {
  float piece[kPiece];
  for (int d = 0; d < head_dim; d += kPiece) {
    const int n = std::min(kPiece, head_dim - d);
    KvRowToF32(type, row + RowBytes(type, d), n, piece);
    for (int i = 0; i < n; ++i) sum[d + i] += piece[i];
  }
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
    const int64_t last = start + p.chunk - 1;
    const std::byte* const page = p.pages[start / kPageTokens - p.first_page];
    float* const out = p.out + head * p.out_stride + index * kv.head_dim;
    std::fill_n(out, kv.head_dim, 0.0f);
    for (int64_t t = first; t <= last; ++t) {
      const auto slot = static_cast<int>(t % kPageTokens);
      AddRow(kv.type_k, page + kv.KOffset(head, slot), kv.head_dim, out);
    }
    const auto count = static_cast<float>(last - first + 1);
    for (int d = 0; d < kv.head_dim; ++d) out[d] /= count;
  }
}

}  // namespace tiercel
