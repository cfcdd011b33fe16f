#ifndef TIERCEL_KERNELS_KV_KV_RING_H_
#define TIERCEL_KERNELS_KV_KV_RING_H_

#include <cstddef>

#include "kernels/device/device_lang.h"
#include "kernels/kv/kv_element.h"
#include "kernels/kv/kv_tile.h"

namespace tiercel {

// Elements d..d + n - 1 of the rows of cells first..last - 1. d is a multiple
// of 32.
struct KvPart {
  int first;
  int last;
  int d;
  int n;
};

// A ring of stages in shared memory, through which parts of rows pass
// unconverted: a block computes with one part while the next kStages - 1 are
// copied. All copies are of 16 bytes. Rows of f32, f16 and bf16 are whole
// packets. Blocks of q8_0 and q4_0 begin at any even address, so the packets
// around them are copied. These are in the same head, all of whose rows
// together are whole packets.
template <int kStages, int kStageBytes>
struct KvRing {
  static constexpr int kPacket = 16;
  static_assert(kPageAlignment % kPacket == 0);

  Array<std::byte, kStages * kStageBytes> at;

  // The least number of bytes from one row of n elements to the next in a
  // stage.
  static constexpr int PitchOf(DType type, int n) {
    const int skew = IsInBlocks(type) ? kPacket - 2 : 0;
    return (KvBytes(type, n) + skew + kPacket - 1) / kPacket * kPacket;
  }

  // The offset of element d of a cell's row in its packet, in bytes.
  static TIERCEL_DEVICE int SkewOf(const KvRows& rows, int cell, int d) {
    if (!IsInBlocks(rows.type)) return 0;
    const int start = cell * static_cast<int>(rows.row_bytes);
    return (start + KvBytes(rows.type, d)) % kPacket;
  }

  // Starts the copy of those cells of a part that are among the rows to a
  // stage, with `pitch` bytes from one row to the next. kLanes of `threads`
  // threads copy a row, each one packet at most.
  template <int kLanes>
  TIERCEL_DEVICE void Fetch(const Thread& t, int threads, const KvRows& rows,
                            const KvPart& part, int pitch, int stage) {
    const int bytes = KvBytes(rows.type, part.n);
    const int offset = t.index % kLanes * kPacket;
    const int begin = rows.begin > part.first ? rows.begin : part.first;
    const int end = rows.end < part.last ? rows.end : part.last;
    const int own = begin + t.index / kLanes;
    const int rows_at_once = threads / kLanes;
    const int64_t stride = rows_at_once * rows.row_bytes;
    const std::byte* from =
        rows.at + own * rows.row_bytes + KvBytes(rows.type, part.d) + offset;
    int to = stage * kStageBytes + (own - part.first) * pitch + offset;
    if (!IsInBlocks(rows.type) && offset >= bytes) return;
#pragma unroll 4
    for (int cell = own; cell < end; cell += rows_at_once) {
      const int skew = SkewOf(rows, cell, part.d);
      if (!IsInBlocks(rows.type) || offset < skew + bytes) {
        CopyAsync16(&at[to], from - skew);
      }
      from += stride;
      to += rows_at_once * pitch;
    }
  }

  // Starts the copy of whole rows to a stage, without padding. The first cell
  // is a multiple of 8, so it begins with a packet.
  TIERCEL_DEVICE void FetchWhole(const Thread& t, int threads,
                                 const KvRows& rows, const KvPart& part,
                                 int stage) {
    const int begin = rows.begin > part.first ? rows.begin : part.first;
    const int end = rows.end < part.last ? rows.end : part.last;
    const int row_bytes = static_cast<int>(rows.row_bytes);
    const int to = stage * kStageBytes - part.first * row_bytes;
    const int last = end * row_bytes;
#pragma unroll 4
    for (int i = begin * row_bytes / kPacket * kPacket + t.index * kPacket;
         i < last; i += threads * kPacket) {
      CopyAsync16(&at[to + i], rows.at + i);
    }
  }

  // The address of element part.d of a cell in a stage.
  TIERCEL_DEVICE const std::byte* Row(const KvRows& rows, const KvPart& part,
                                      int cell, int pitch, int stage) {
    return &at[stage * kStageBytes + (cell - part.first) * pitch] +
           SkewOf(rows, cell, part.d);
  }
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_KV_RING_H_
