#ifndef TIERCEL_KERNELS_KV_KV_TILE_H_
#define TIERCEL_KERNELS_KV_KV_TILE_H_

#include <cstddef>

#include "kernels/device/device_lang.h"
#include "kernels/kv/kv_element.h"
#include "kernels/kv/kv_layout.h"

namespace tiercel {

// Some elements of the rows of one KV head in one page, in shared memory.
struct KvTile {
  static constexpr int kElements = 32;
  static constexpr int kPitch = kElements + 1;  // lanes read different banks

  Array<float, kPageTokens * kPitch> at;  // [cell][element]

  TIERCEL_DEVICE float Get(int cell, int element) {
    return at[cell * kPitch + element];
  }

  // Fetches n elements, at most kElements, from element d on, of the cells
  // begin..end - 1; `rows` is that of cell 0. All threads of the block call it.
  TIERCEL_DEVICE void Fetch(const Thread& t, DType type, const std::byte* rows,
                            int64_t row_bytes, int begin, int end, int d,
                            int n) {
    Barrier();  // all are done with what was here before
    for (int i = t.index; i < (end - begin) * kElements; i += t.count) {
      const int cell = begin + i / kElements;
      const int e = i % kElements;
      if (e >= n) continue;
      at[cell * kPitch + e] = KvElement(type, rows + cell * row_bytes, d + e);
    }
    Barrier();
  }
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_KV_TILE_H_
