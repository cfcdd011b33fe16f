// Lanes are positions: 16 keys are transposed, so that no sum goes across
// lanes.

#include "kernels/kv/key_norms.h"
#include "kernels/kv/kv_lanes.h"

namespace tiercel::TIERCEL_ISA_NS {
namespace {

constexpr int kLanes = 16;

// Adds the squares of N elements from d on.
template <typename Source, int N>
TIERCEL_INLINE F32x16 AddSquares(const std::byte* const (&row)[kLanes], int d,
                                 F32x16 sum) {
  F32x16 column[kLanes];
  ReadColumns<Source>(row, d, column);
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) sum = Fma(column[i], column[i], sum);
  return sum;
}

template <typename Source>
void NormsOf(const NormRows& n) {
  for (int first = 0; first < n.rows; first += kLanes) {
    // The last row stands in for rows after it.
    const std::byte* row[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      const int at = first + i < n.rows ? first + i : n.rows - 1;
      row[i] = n.row + at * n.row_bytes;
    }
    F32x16 sum = Zero();
    int d = 0;
    for (; d + kLanes <= n.head_dim; d += kLanes) {
      sum = AddSquares<Source, kLanes>(row, d, sum);
    }
    if (d < n.head_dim) sum = AddSquares<TailOf<Source>, 8>(row, d, sum);
    uint16_t norm[kLanes];
    StoreF16(Sqrt(sum), norm);
    const int rows = n.rows - first < kLanes ? n.rows - first : kLanes;
    memcpy(n.out + first, norm, static_cast<size_t>(rows) * sizeof(norm[0]));
  }
}

}  // namespace

void ComputeNorms(const NormRows& n) {
  ForSource(n.type, [&](auto source) { NormsOf<decltype(source)>(n); });
}

}  // namespace tiercel::TIERCEL_ISA_NS
