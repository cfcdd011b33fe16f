// Bytes: a row of scores five times, from the second-level cache.
// Operations: a handful of integers a score and pass.
// Bound by: the launch and barriers, as one block has a row.

#include "kernels/device/device_lang.h"
#include "kernels/select/block_top_k.h"
#include "kernels/select/top_k.h"

namespace tiercel {
namespace {

// A block selects from one row at a time.
struct KeepRows {
  static constexpr int kMaxThreads = BlockTopK::kThreads;
  using Shared = BlockTopK::Shared;
  TopKParams p;
  int64_t kept;
  int64_t always;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& s) const {
    for (int64_t row = t.block; row < p.rows; row += t.blocks) {
      int32_t* const out = p.out.raw() + row * kept;
      for (int64_t i = t.index; i < always; i += t.count) {
        out[i] = static_cast<int32_t>(i);
      }
      if (kept == always) continue;
      BlockTopK::Keep(t, s, p.values.raw() + row * p.stride + always,
                      p.n - always, kept - always, static_cast<int32_t>(always),
                      out + always);
    }
  }
};

}  // namespace

TIERCEL_KERNEL_BODY(TopKCuda, CUstream_st* stream, const TopKParams& p) {
  const int64_t kept = p.k < p.n ? p.k : p.n;
  const int64_t always = p.always < kept ? p.always : kept;
  return Launch(stream, TurnsFor(p.rows, 1, KeepRows::kMaxThreads),
                KeepRows{p, kept, always});
}

}  // namespace tiercel
