#include <cmath>
#include <limits>

#include "kernels/device/device_lang.h"
#include "kernels/kv/kv_write_body.h"
#include "kernels/number/half.h"

namespace tiercel {
namespace {

constexpr int kPiece = 32;       // elements of a warp, a block of q8_0
constexpr int kPieceBytes = 34;  // of q8_0

// A warp writes 32 elements of one head's row: K and V of a page at once, 6 to
// 8 bytes moved each.
struct WritePieces {
  static constexpr int kMaxThreads = 128;
  struct Shared {};
  KvPageRows p;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared&) const {
    const int64_t head_pieces = (p.head_dim - 1) / kPiece + 1;
    const int64_t row_pieces = p.kv_heads * head_pieces;
    const int64_t warps = t.count / kWarpLanes;
    for (int64_t i = t.block * warps + t.warp(); i < 2 * p.rows * row_pieces;
         i += t.blocks * warps) {
      const KvHalf& half = i < p.rows * row_pieces ? p.k : p.v;
      const int64_t piece = i % (p.rows * row_pieces);
      const int64_t row = piece / row_pieces;
      const int64_t head = piece % row_pieces / head_pieces;
      const auto d = static_cast<int>(piece % head_pieces) * kPiece;
      WritePiece(half.type, d, t.lane(),
                 half.x + row * half.stride + head * p.head_dim,
                 half.cells + head * half.head_bytes + row * half.row_bytes);
    }
  }

  // Elements d.. of `row`.
  TIERCEL_DEVICE void WritePiece(DType type, int d, int lane, const float* x,
                                 std::byte* row) const {
    if (type == DType::kQ8_0) {
      WriteQ8(x[d + lane], lane, row + d / kPiece * kPieceBytes);
      return;
    }
    const int i = d + lane;
    if (i >= p.head_dim) return;
    if (type == DType::kF32) {
      reinterpret_cast<float*>(row)[i] = x[i];
    } else {
      reinterpret_cast<uint16_t*>(row)[i] =
          type == DType::kF16 ? F16FromF32(x[i]) : Bf16FromF32(x[i]);
    }
  }

  TIERCEL_DEVICE void WriteQ8(float x, int lane, std::byte* block) const {
    const bool finite = Ballot(kAllLanes, std::isfinite(x)) == kAllLanes;
    float max = std::fabs(x);
    for (int bits = kWarpLanes / 2; bits > 0; bits /= 2) {
      max = std::fmax(max, ShuffleXor(kAllLanes, max, bits));
    }
    const float d =
        finite ? max / 127.0f : std::numeric_limits<float>::quiet_NaN();
    if (lane == 0) *reinterpret_cast<uint16_t*>(block) = F16FromF32(d);
    // Where d is subnormal it has few bits, and the quotient can pass 127.
    const float q =
        d > 0.0f ? std::fmin(std::fmax(std::nearbyint(x / d), -127.0f), 127.0f)
                 : 0.0f;
    block[2 + lane] = static_cast<std::byte>(static_cast<int8_t>(q));
  }
};

}  // namespace

int KvWriteCuda(CUstream_st* stream, const KvPageRows& p) {
  const int64_t warps =
      2 * p.rows * p.kv_heads * ((p.head_dim - 1) / kPiece + 1);
  constexpr int kThreads = WritePieces::kMaxThreads;
  return Launch(stream, TurnsFor(warps, kThreads / kWarpLanes, kThreads),
                WritePieces{p});
}

}  // namespace tiercel
