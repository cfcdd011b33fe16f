// Lanes are chunks: their digests are transposed in groups of 16, once for a
// few query heads, so that no sum goes across lanes.

#include "kernels/select/mean_scores.h"
#include "kernels/simd/simd.h"

namespace tiercel::TIERCEL_ISA_NS {
namespace {

constexpr int kLanes = 16;

// The number of query heads that share a transposition, such that their chains
// stay in the registers.
#if defined(__AVX512F__)
constexpr int kTileHeads = 8;
#else
constexpr int kTileHeads = 4;
#endif

// 16 digests. If there are fewer, the last one stands in for the others.
struct Digests {
  const uint16_t* row[kLanes];
};

// Loads N elements of a digest; the other lanes are zero.
template <int N>
TIERCEL_INLINE F32x16 LoadElements(const uint16_t* p) {
  if constexpr (N == kLanes) {
    return LoadF16(p);
  } else {
    uint16_t padded[kLanes] = {};
    memcpy(padded, p, N * sizeof(uint16_t));
    return LoadF16(padded);
  }
}

// Adds the products of elements d..d + N - 1 to R heads' chains.
template <int R, int N>
TIERCEL_INLINE void AddProducts(const float* q, int64_t q_stride,
                                const Digests& digests, int d,
                                F32x16 (&sum)[R]) {
  F32x16 column[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    column[i] = LoadElements<N>(digests.row[i] + d);
  }
  Transpose(column);
#pragma GCC unroll 16
  for (int j = 0; j < N; ++j) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      sum[r] = Fma(Set1(q[r * q_stride + d + j]), column[j], sum[r]);
    }
  }
}

// Scores 16 chunks from `chunk` on with R heads from `head` on.
template <int R>
void DotsOfTile(const MeanDots& p, int head, int64_t chunk,
                const Digests& digests) {
  const float* const q = p.q + int64_t{head} * p.head_dim;
  F32x16 sum[R];
  for (int r = 0; r < R; ++r) sum[r] = Zero();
  int d = 0;
  for (; d + kLanes <= p.head_dim; d += kLanes) {
    AddProducts<R, kLanes>(q, p.head_dim, digests, d, sum);
  }
  if (d < p.head_dim) AddProducts<R, 8>(q, p.head_dim, digests, d, sum);
  for (int r = 0; r < R; ++r) {
    Store(sum[r] * Set1(p.scale), p.score + (head + r) * p.stride + chunk);
  }
}

// Scores with the last heads of a group, which are fewer than a full tile.
template <int R>
void DotsOfRest(const MeanDots& p, int head, int64_t chunk,
                const Digests& digests) {
  if (p.group - head == R) {
    DotsOfTile<R>(p, head, chunk, digests);
  } else if constexpr (R > 1) {
    DotsOfRest<R - 1>(p, head, chunk, digests);
  }
}

}  // namespace

void ComputeMeanDots(const MeanDots& p) {
  for (int64_t chunk = 0; chunk < p.chunks; chunk += kLanes) {
    Digests digests;
    for (int i = 0; i < kLanes; ++i) {
      const int64_t c = chunk + i < p.chunks ? chunk + i : p.chunks - 1;
      digests.row[i] = p.means + c * p.head_dim;
    }
    int head = 0;
    for (; head + kTileHeads <= p.group; head += kTileHeads) {
      DotsOfTile<kTileHeads>(p, head, chunk, digests);
    }
    DotsOfRest<kTileHeads - 1>(p, head, chunk, digests);
  }
}

}  // namespace tiercel::TIERCEL_ISA_NS
