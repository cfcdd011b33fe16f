// Bytes: 8 an element.
// Operations: none.
// Bound by: the launch for one row, memory for a prompt.

#include "kernels/device/device_lang.h"
#include "kernels/layer/gather_rows.h"

namespace tiercel {
namespace {

// A thread copies four columns of a row, or one where rows are not aligned.
struct CopyRows {
  static constexpr int kMaxThreads = 256;
  struct Shared {};
  GatherRowsParams p;
  bool packets;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared&) const {
    const int64_t width = packets ? 4 : 1;
    const int64_t pieces = p.dim / width;
    for (int64_t i = t.block * t.count + t.index; i < p.items * pieces;
         i += t.blocks * t.count) {
      const int64_t item = i / pieces;
      const int64_t column = i % pieces * width;
      const float* const from = p.x.raw() + p.rows[item] * p.x_stride + column;
      float* const to = p.out.raw() + item * p.dim + column;
      if (packets) {
        Store16(Load16(from), to);
      } else {
        *to = *from;
      }
    }
  }
};

}  // namespace

TIERCEL_KERNEL_BODY(GatherRowsCuda, CUstream_st* stream,
                    const GatherRowsParams& p) {
  const bool packets = p.dim % 4 == 0 && p.x_stride % 4 == 0 &&
                       IsAligned(p.x.raw()) && IsAligned(p.out.raw());
  constexpr int kThreads = CopyRows::kMaxThreads;
  const int64_t pieces = p.items * (packets ? p.dim / 4 : p.dim);
  return Launch(stream, TurnsFor(pieces, kThreads, kThreads),
                CopyRows{p, packets});
}

}  // namespace tiercel
