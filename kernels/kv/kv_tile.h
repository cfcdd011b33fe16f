#ifndef TIERCEL_KERNELS_KV_KV_TILE_H_
#define TIERCEL_KERNELS_KV_KV_TILE_H_

#include <cstddef>

#include "kernels/device/device_lang.h"
#include "kernels/kv/kv_element.h"
#include "kernels/kv/kv_layout.h"

namespace tiercel {

// The rows of cells begin..end - 1 of one KV head in one page. The row of cell
// 0 begins at a multiple of 16 bytes (kPageAlignment).
struct KvRows {
  DType type;
  const std::byte* at;  // the row of cell 0
  int64_t row_bytes;
  int head_dim;
  int begin;
  int end;
};

// Shared memory through which rows pass unconverted: a block of kPageTokens
// threads computes with one piece of them while the next is copied. All copies
// are of 16 bytes. Rows of f32, f16 and bf16 are whole packets. Blocks of q8_0
// and q4_0 begin at any even address, so the packets around them are copied.
// These are in the same head, all of whose rows together are whole packets.
struct KvTile {
  static constexpr int kPieceBytes = 64;  // piece of a row; else one block
  static constexpr int kPacket = 16;
  static_assert(kPageAlignment % kPacket == 0);
  static constexpr int kPitch =
      kPieceBytes + kPacket;  // lanes read different banks
  static constexpr int kStageBytes = kPageTokens * kPitch;

  Array<std::byte, 2 * kStageBytes> at;

  // Calls body(i, x) in order with elements first + i, i from 0 to n - 1, of
  // the thread's cell, if it is one of the rows. n is a multiple of 8, and
  // `first` one of 32. All threads of the block must call it.
  template <typename Body>
  TIERCEL_DEVICE void ForElements(const Thread& t, const KvRows& rows,
                                  int first, int n, const Body& body) {
    const int step = IsInBlocks(rows.type)      ? kKvPiece
                     : rows.type == DType::kF32 ? kPieceBytes / 4
                                                : kPieceBytes / 2;
    const auto from = [&](int piece) {
      return KvBytes(rows.type, first + piece * step);
    };
    const auto bytes = [&](int piece) {
      const int left = n - piece * step;
      return KvBytes(rows.type, left < step ? left : step);
    };
    InStages((n - 1) / step + 1,
             [&](int piece, int stage) {
               Fetch<kPieceBytes / kPacket>(t, rows, rows.begin, rows.end,
                                            from(piece), bytes(piece), kPitch,
                                            stage);
             },
             [&](int piece, int stage) {
               if (t.index < rows.begin || t.index >= rows.end) return;
               const int64_t start = t.index * rows.row_bytes + from(piece);
               float x[kKvPiece];
               ReadKvPiece(
                   rows.type,
                   &at[stage * kStageBytes + (t.index - rows.begin) * kPitch],
                   static_cast<int>(start % kPacket), bytes(piece), x);
               constexpr int kAtOnce = 8;
#pragma unroll
               for (int e = 0; e < kKvPiece; e += kAtOnce) {
                 if (e >= step || piece * step + e >= n) break;
#pragma unroll
                 for (int i = e; i < e + kAtOnce; ++i) {
                   body(piece * step + i, x[i]);
                 }
               }
             });
  }

 private:
  // Calls use(i, stage) for i from 0 to count - 1, when the copies of
  // fetch(i, stage) have arrived. Those of i + 1 have been started by then.
  template <typename FetchPart, typename UsePart>
  TIERCEL_DEVICE static void InStages(int count, const FetchPart& fetch,
                                      const UsePart& use) {
    Barrier();  // all are done with the pieces before
    fetch(0, 0);
    for (int i = 0; i < count; ++i) {
      CopyWait<0>();
      Barrier();  // this part is there, and all are done with the one before
      if (i + 1 < count) fetch(i + 1, (i + 1) % 2);
      use(i, i % 2);
    }
  }

  // Copies the packets around bytes from..from + bytes - 1 of the rows of cells
  // first..last - 1 to a stage, with `pitch` bytes from one row to the next.
  // kLanes threads copy a row, each one packet at most.
  template <int kLanes>
  TIERCEL_DEVICE void Fetch(const Thread& t, const KvRows& rows, int first,
                            int last, int from, int bytes, int pitch,
                            int stage) {
    const int offset = t.index % kLanes * kPacket;
    for (int cell = first + t.index / kLanes; cell < last;
         cell += kPageTokens / kLanes) {
      const int64_t start = cell * rows.row_bytes + from;
      const int skew = static_cast<int>(start % kPacket);
      if (offset >= skew + bytes) continue;
      CopyAsync16(&at[stage * kStageBytes + (cell - first) * pitch + offset],
                  rows.at + (start - skew) + offset);
    }
    CopyCommit();
  }
};

// The cells of one page that are among positions first..last - 1.
struct PageCells {
  int64_t start;  // position of cell 0
  int begin;
  int end;

  constexpr bool Has(int cell) const { return cell >= begin && cell < end; }
};
TIERCEL_DEVICE PageCells CellsOfPage(int64_t page, int64_t first,
                                     int64_t last) {
  const int64_t start = page * kPageTokens;
  return {start, first > start ? static_cast<int>(first - start) : 0,
          last - start < kPageTokens ? static_cast<int>(last - start)
                                     : kPageTokens};
}

// The number of pages that hold some of positions first..last - 1; first <
// last.
constexpr int64_t CountPages(int64_t first, int64_t last) {
  return (last - 1) / kPageTokens - first / kPageTokens + 1;
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_KV_TILE_H_
