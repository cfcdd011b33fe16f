// Bytes: 6 to 8 an element: f32 read, K and V of the page's type written.
// Operations: none, or some 10 f32 an element for q8_0.
// Bound by: the launch for one row, memory for a prompt.

#include "kernels/device/device_lang.h"
#include "kernels/kv/kv_element.h"
#include "kernels/kv/kv_write.h"

namespace tiercel {
namespace {

// A warp writes 32 elements of one head's row, of K or of V, and moves 6 to 8
// bytes for each. One launch writes both K and V of a page.
struct WritePieces {
  static constexpr int kMaxThreads = 128;
  struct Shared {};
  KvPageRows p;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared&) const {
    const int64_t head_pieces = (p.head_dim - 1) / kKvPiece + 1;
    const int64_t pieces = p.rows * p.kv_heads * head_pieces;
    const int64_t warps = t.count / kWarpLanes;
    for (int64_t i = t.block * warps + t.warp(); i < 2 * pieces;
         i += t.blocks * warps) {
      if (i < pieces) {
        WritePiece(t, p.k, i, head_pieces);
      } else {
        WritePiece(t, p.v, i - pieces, head_pieces);
      }
    }
  }

  TIERCEL_DEVICE void WritePiece(const Thread& t, const KvHalf& half,
                                 int64_t piece, int64_t head_pieces) const {
    const int64_t row = piece / head_pieces / p.kv_heads;
    const int64_t head = piece / head_pieces % p.kv_heads;
    const auto d = static_cast<int>(piece % head_pieces) * kKvPiece;
    const float* const x = half.x + row * half.stride + head * p.head_dim;
    const int e = d + t.lane();
    WriteKvPiece(half.type, e < p.head_dim ? x[e] : 0.0f, d, p.head_dim,
                 t.lane(),
                 half.cells + head * half.head_bytes + row * half.row_bytes);
  }
};

}  // namespace

int KvWriteCuda(CUstream_st* stream, const KvPageRows& p) {
  const int64_t warps =
      2 * p.rows * p.kv_heads * ((p.head_dim - 1) / kKvPiece + 1);
  constexpr int kThreads = WritePieces::kMaxThreads;
  return Launch(stream, TurnsFor(warps, kThreads / kWarpLanes, kThreads),
                WritePieces{p});
}

}  // namespace tiercel
