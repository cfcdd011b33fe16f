// Bytes: 6 to 8 an element: f32 read, K and V of the page's type written. Keys
// that are rotated are read twice, the second time from a cache; queries are
// read and written.
// Operations: 3 f32 an element that is rotated, and some 10 an element of q8_0.
// Bound by: the launch for one row, memory for a prompt.

#include "kernels/device/device_lang.h"
#include "kernels/kv/kv_element.h"
#include "kernels/kv/kv_write.h"

namespace tiercel {
namespace {

// A warp writes 32 elements of one head's row, of K or of V, and moves 6 to 8
// bytes for each, or rotates 32 pairs of a query; if queries are scaled, it
// takes the elements that are not rotated as pairs of one. One launch writes
// both K and V of a page, and rotates the queries of its rows.
struct WritePieces {
  static constexpr int kMaxThreads = 128;
  struct Shared {};
  KvPageRows p;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared&) const {
    const int64_t head_pieces = (p.head_dim - 1) / kKvPiece + 1;
    const int64_t pieces = p.rows * p.kv_heads * head_pieces;
    const int64_t warps = t.count / kWarpLanes;
    const int64_t all = 2 * pieces + p.rows * p.rotation.heads * PairPieces(p);
    for (int64_t i = t.block * warps + t.warp(); i < all;
         i += t.blocks * warps) {
      if (i < pieces) {
        WritePiece(t, p.k, i, head_pieces, p.rotation.half);
      } else if (i < 2 * pieces) {
        WritePiece(t, p.v, i - pieces, head_pieces, /*rotated=*/0);
      } else {
        RotatePairs(t, i - 2 * pieces);
      }
    }
  }

  // The pairs of a query's head that change.
  static constexpr int Pairs(const KvPageRows& p) {
    const int half = p.rotation.half;
    return p.rotation.q_scale == 1.0f ? half : p.head_dim - half;
  }
  // The parts of 32 pairs of a head.
  static constexpr int64_t PairPieces(const KvPageRows& p) {
    return (Pairs(p) + kWarpLanes - 1) / kWarpLanes;
  }

  // Pair i of a head, rotated by its angle.
  struct Pair {
    float first;
    float second;
  };
  TIERCEL_DEVICE Pair Rotated(const float* x, int64_t row, int i) const {
    const int half = p.rotation.half;
    const float cos = p.rotation.cos.raw()[row * half + i];
    const float sin = p.rotation.sin.raw()[row * half + i];
    const float a = x[i];
    const float b = x[i + half];
    return {a * cos - b * sin, b * cos + a * sin};
  }

  // Rotates and scales 32 pairs of a query's head, in place.
  TIERCEL_DEVICE void RotatePairs(const Thread& t, int64_t piece) const {
    const int64_t of_head = PairPieces(p);
    const int64_t row = piece / of_head / p.rotation.heads;
    const int64_t head = piece / of_head % p.rotation.heads;
    const auto i = static_cast<int>(piece % of_head) * kWarpLanes + t.lane();
    if (i >= Pairs(p)) return;
    const float scale = p.rotation.q_scale;
    float* const x =
        p.rotation.q.raw() + row * p.rotation.q_stride + head * p.head_dim;
    if (i >= p.rotation.half) {
      x[i + p.rotation.half] *= scale;
      return;
    }
    const Pair pair = Rotated(x, row, i);
    x[i] = pair.first * scale;
    x[i + p.rotation.half] = pair.second * scale;
  }

  // Writes 32 elements of a head's row, of which the first `rotated` pairs are
  // rotated.
  TIERCEL_DEVICE void WritePiece(const Thread& t, const KvHalf& half,
                                 int64_t piece, int64_t head_pieces,
                                 int rotated) const {
    const int64_t row = piece / head_pieces / p.kv_heads;
    const int64_t head = piece / head_pieces % p.kv_heads;
    const auto d = static_cast<int>(piece % head_pieces) * kKvPiece;
    const float* const x = half.x + row * half.stride + head * p.head_dim;
    const int e = d + t.lane();
    const float value = e >= p.head_dim   ? 0.0f
                        : e < rotated     ? Rotated(x, row, e).first
                        : e < 2 * rotated ? Rotated(x, row, e - rotated).second
                                          : x[e];
    WriteKvPiece(half.type, value, d, p.head_dim, t.lane(),
                 half.cells + head * half.head_bytes + row * half.row_bytes);
  }
};

}  // namespace

TIERCEL_KERNEL_BODY(KvWriteCuda, CUstream_st* stream, const KvPageRows& p) {
  const int64_t warps =
      2 * p.rows * p.kv_heads * ((p.head_dim - 1) / kKvPiece + 1) +
      p.rows * p.rotation.heads * WritePieces::PairPieces(p);
  constexpr int kThreads = WritePieces::kMaxThreads;
  return Launch(stream, TurnsFor(warps, kThreads / kWarpLanes, kThreads),
                WritePieces{p});
}

}  // namespace tiercel
