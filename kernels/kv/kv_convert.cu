// Bytes: rows of one type read and of another written: 2 and 1.06 an element
// from f16 to q8_0.
// Operations: none, or some 10 f32 an element for q8_0.
// Bound by: memory.

#include "kernels/device/device_lang.h"
#include "kernels/kv/kv_convert.h"
#include "kernels/kv/kv_element.h"

namespace tiercel {
namespace {

// A block converts one run, of which a warp takes 32 elements at a time.
struct ConvertRuns {
  static constexpr int kMaxThreads = 128;
  struct Shared {};
  KvConvertParams p;
  const KvConvertParams::Run* runs;
  int64_t from_bytes;  // bytes of a row
  int64_t to_bytes;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared&) const {
    const int64_t row_pieces = (p.head_dim - 1) / kKvPiece + 1;
    for (int64_t i = t.block; i < p.num_runs; i += t.blocks) {
      const KvConvertParams::Run run = runs[i];
      if (p.from == p.to) {
        CopyRun(t, run);
        continue;
      }
      for (int64_t piece = t.warp(); piece < run.rows * row_pieces;
           piece += t.count / kWarpLanes) {
        const int64_t row = piece / row_pieces;
        const auto d = static_cast<int>(piece % row_pieces) * kKvPiece;
        const int e = d + t.lane();
        const float x =
            e < p.head_dim
                ? KvElement(p.from, run.from.raw() + row * from_bytes, e)
                : 0.0f;
        WriteKvPiece(p.to, x, d, p.head_dim, t.lane(),
                     run.to.raw() + row * to_bytes);
      }
    }
  }

  // A lane copies 16 bytes if both addresses are aligned to 16, else two: every
  // row has an even number of bytes.
  TIERCEL_DEVICE void CopyRun(const Thread& t,
                              const KvConvertParams::Run& run) const {
    const int64_t bytes = run.rows * from_bytes;
    const bool aligned =
        reinterpret_cast<uintptr_t>(run.from.raw()) % 16 == 0 &&
        reinterpret_cast<uintptr_t>(run.to.raw()) % 16 == 0;
    const int64_t packets = aligned ? bytes / 16 : 0;
    const auto* from = reinterpret_cast<const uint16_t*>(run.from.raw());
    auto* to = reinterpret_cast<uint16_t*>(run.to.raw());
    for (int64_t i = t.index; i < packets; i += t.count) {
      Store16(Load16(from + 8 * i), to + 8 * i);
    }
    for (int64_t i = 8 * packets + t.index; i < bytes / 2; i += t.count) {
      to[i] = from[i];
    }
  }
};

}  // namespace

TIERCEL_KERNEL_BODY(KvConvertCuda, CUstream_st* stream,
                    const KvConvertParams& p,
                    DevicePtr<const KvConvertParams::Run> runs) {
  return Launch(stream, TurnsFor(p.num_runs, 1, ConvertRuns::kMaxThreads),
                ConvertRuns{p, runs.raw(), RowBytes(p.from, p.head_dim),
                            RowBytes(p.to, p.head_dim)});
}

}  // namespace tiercel
