// Bytes: the digests, f16, once for every four queries of a KV head, and a
// float written a chunk and query.
// Operations: 2 f32 an element of a digest and query.
// Bound by: memory; with few chunks by the launch.

#include <cmath>

#include "kernels/device/device_lang.h"
#include "kernels/number/half.h"
#include "kernels/select/mean_scores.h"

namespace tiercel {
namespace {

// A block scores 128 chunks of one KV head, one thread per chunk. The digests
// pass through shared memory, 32 elements of each at a time, once for every
// four query heads.
struct ScoreChunks {
  static constexpr int kMaxThreads = 128;
  static constexpr int kPiece = 32;
  static constexpr int kPitch = kPiece + 1;  // lanes read different banks
  static constexpr int kHeads = 4;
  struct Shared {
    Array<float, kMaxThreads * kPitch> means;
  };
  MeanScoresParams p;
  int64_t tiles;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& shared) const {
    const int group = p.heads / p.kv_heads;
    for (int64_t item = t.block; item < p.kv_heads * tiles; item += t.blocks) {
      const int64_t kv_head = item / tiles;
      const int64_t first = item % tiles * kMaxThreads;
      for (int g = 0; g < group; g += kHeads) {
        ScoreHeads(t, shared, kv_head, first, kv_head * group + g,
                   group - g < kHeads ? group - g : kHeads);
      }
    }
  }

  // Scores the chunks from `first` on with `heads` query heads from `head` on.
  TIERCEL_DEVICE void ScoreHeads(const Thread& t, Shared& shared,
                                 int64_t kv_head, int64_t first, int64_t head,
                                 int heads) const {
    const int64_t left = p.num_chunks - first;
    const int size = left < kMaxThreads ? static_cast<int>(left) : kMaxThreads;
    const uint16_t* means =
        p.means.raw() + kv_head * p.means_stride + first * p.head_dim;
    float dots[kHeads] = {};
    for (int d = 0; d < p.head_dim; d += kPiece) {
      const int n = p.head_dim - d < kPiece ? p.head_dim - d : kPiece;
      Barrier();  // all are done with the piece before
      for (int i = t.index; i < size * kPiece; i += t.count) {
        const int chunk = i / kPiece;
        const int e = i % kPiece;
        if (e >= n) continue;
        shared.means[chunk * kPitch + e] =
            F32FromF16(means[static_cast<int64_t>(chunk) * p.head_dim + d + e]);
      }
      Barrier();
      if (t.index >= size) continue;
      const float* q = p.q.raw() + head * p.head_dim + d;
      for (int i = 0; i < n; ++i) {
        const float mean = shared.means[t.index * kPitch + i];
#pragma unroll
        for (int h = 0; h < kHeads; ++h) {
          if (h < heads)
            dots[h] = std::fma(q[h * p.head_dim + i], mean, dots[h]);
        }
      }
    }
    if (t.index >= size) return;
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      if (h >= heads) continue;
      p.out.raw()[(head + h) * p.out_stride + first + t.index] =
          dots[h] * p.scale;
    }
  }
};

}  // namespace

TIERCEL_KERNEL_BODY(MeanScoresCuda, CUstream_st* stream,
                    const MeanScoresParams& p) {
  constexpr int kThreads = ScoreChunks::kMaxThreads;
  const int64_t tiles = (p.num_chunks - 1) / kThreads + 1;
  return Launch(stream, TurnsFor(p.kv_heads * tiles, 1, kThreads),
                ScoreChunks{p, tiles});
}

}  // namespace tiercel
