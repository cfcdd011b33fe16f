// Bytes: the keys once, and a float written a key.
// Operations: 2 f32 an element of a key.
// Bound by: memory.

#include <cmath>

#include "kernels/device/device_lang.h"
#include "kernels/kv/key_norms.h"
#include "kernels/kv/kv_tile.h"

namespace tiercel {
namespace {

// A block computes the norms of the keys of one page of one KV head, one key
// per thread.
struct MeasureKeys {
  static constexpr int kMaxThreads = kPageTokens;
  struct Shared {
    KvTile keys;
  };
  KeyNormsParams p;
  DevicePages pages;
  int64_t k_row_bytes;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& shared) const {
    const int kv_heads = p.layout.kv_heads;
    const int64_t first = p.first / kPageTokens;
    const int64_t items = CountPages(p.first, p.last) * kv_heads;
    for (int64_t item = t.block; item < items; item += t.blocks) {
      MeasurePage(t, shared, first + item / kv_heads, item % kv_heads);
    }
  }

  TIERCEL_DEVICE void MeasurePage(const Thread& t, Shared& shared, int64_t page,
                                  int64_t kv_head) const {
    const PageCells cells = CellsOfPage(page, p.first, p.last);
    const std::byte* const keys =
        pages.At(page) + kv_head * kPageTokens * k_row_bytes;
    float sum = 0.0f;
    const int head_dim = p.layout.head_dim;
    shared.keys.ForElements(
        t,
        {p.layout.type_k, keys, k_row_bytes, head_dim, cells.begin, cells.end},
        0, head_dim, [&](int, float x) { sum = std::fma(x, x, sum); });
    if (!cells.Has(t.index)) return;
    p.out.raw()[kv_head * p.out_stride + cells.start + t.index - p.first] =
        F16FromF32(std::sqrt(sum));
  }
};

}  // namespace

TIERCEL_KERNEL_BODY(KeyNormsCuda, CUstream_st* stream, const KeyNormsParams& p,
                    const DevicePages& pages) {
  const int64_t count = CountPages(p.first, p.last);
  return Launch(
      stream, TurnsFor(count * p.layout.kv_heads, 1, MeasureKeys::kMaxThreads),
      MeasureKeys{p, pages, p.layout.KRowBytes()});
}

}  // namespace tiercel
