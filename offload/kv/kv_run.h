#ifndef TIERCEL_OFFLOAD_KV_KV_RUN_H_
#define TIERCEL_OFFLOAD_KV_KV_RUN_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/kv/kv_layout.h"

namespace tiercel {

// Rows of one KV head, all in one page, and where their K and V are to go.
struct KvRun {
  int layer = 0;
  int head = 0;
  int64_t position = 0;  // of the first row
  int64_t rows = 0;
  std::byte* k = nullptr;
  std::byte* v = nullptr;
};

// Copies the rows of `run` from their page to where they are to go.
inline void CopyRun(const KvLayout& layout, const std::byte* page,
                    const KvRun& run) {
  const auto cell = static_cast<int>(run.position % kPageTokens);
  std::memcpy(run.k, page + layout.KOffset(run.head, cell),
              static_cast<size_t>(run.rows * layout.KRowBytes()));
  std::memcpy(run.v, page + layout.VOffset(run.head, cell),
              static_cast<size_t>(run.rows * layout.VRowBytes()));
}

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_KV_KV_RUN_H_
