// Lanes are chunks: their digests are transposed in groups of 16, once for a
// few query heads, so that no sum goes across lanes.

#include "kernels/attention/chunk_scores_body.h"
#include "kernels/simd/simd.h"

namespace tiercel::TIERCEL_ISA_NS {
namespace {

constexpr int kLanes = 16;

// Query heads that share a transposition: their chains stay in the registers.
#if defined(__AVX512F__)
constexpr int kTileHeads = 8;
#else
constexpr int kTileHeads = 4;
#endif

// 16 digests; where there are fewer, the last stands in for the others.
struct Digests {
  const uint16_t* row[kLanes];
};

// N elements of a digest; the other lanes are zero.
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

// Adds elements d..d + N - 1 of all products to R heads' chains.
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

// R heads from `head` on, 16 chunks from `chunk` on.
template <int R>
void DotsOfTile(const ChunkDots& p, int head, int64_t chunk,
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

// The last heads of a group, fewer than a full tile.
template <int R>
void DotsOfRest(const ChunkDots& p, int head, int64_t chunk,
                const Digests& digests) {
  if (p.group - head == R) {
    DotsOfTile<R>(p, head, chunk, digests);
  } else if constexpr (R > 1) {
    DotsOfRest<R - 1>(p, head, chunk, digests);
  }
}

// Scores to weights. Returns their sum, or zero if a score is not finite.
float Softmax(float* score, int64_t chunks) {
  F32x16 largest = Set1(score[0]);
  F32x16 fault = Zero();  // zero, or NaN
  for (int64_t c = 0; c < chunks; c += kLanes) {
    const F32x16 x = Load(score + c);
    largest = Max(largest, x);
    fault = Fma(x, Zero(), fault);
  }
  if (!(ReduceAdd(fault) == 0.0f)) return 0.0f;

  const F32x16 max = Set1(ReduceMax(largest));
  const int64_t full = chunks / kLanes * kLanes;
  F32x16 total = Zero();
  for (int64_t c = 0; c < full; c += kLanes) {
    const F32x16 weight = Exp(Load(score + c) - max);
    Store(weight, score + c);
    total = total + weight;
  }
  if (full < chunks) {
    const int rest = static_cast<int>(chunks - full);
    Store(Exp(Load(score + full) - max), score + full);
    total = total + LoadN(score + full, rest);
  }
  return ReduceAdd(total);
}

void AddQuotients(const float* weight, float sum, int64_t chunks, float* out) {
  const F32x16 divisor = Set1(sum);
  int64_t c = 0;
  for (; c + kLanes <= chunks; c += kLanes) {
    Store(Load(out + c) + Load(weight + c) / divisor, out + c);
  }
  const int rest = static_cast<int>(chunks - c);
  StoreN(LoadN(out + c, rest) + LoadN(weight + c, rest) / divisor, out + c,
         rest);
}

}  // namespace

void ComputeChunkDots(const ChunkDots& p) {
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

void ComputeChunkWeights(const ChunkWeights& p) {
  memset(p.out, 0, sizeof(float) * static_cast<size_t>(p.chunks));
  for (int h = 0; h < p.group; ++h) {
    float* const score = p.score + h * p.stride;
    const float sum = Softmax(score, p.chunks);
    if (sum > 0.0f) AddQuotients(score, sum, p.chunks, p.out);
  }
}

}  // namespace tiercel::TIERCEL_ISA_NS
