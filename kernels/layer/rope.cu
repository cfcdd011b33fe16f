// Bytes: 8 an element, angles once for the heads of a row.
// Operations: 3 f32 an element.
// Bound by: the launch for one row, memory for a prompt.

#include "kernels/device/device_lang.h"
#include "kernels/layer/rope.h"

namespace tiercel {
namespace {

// A thread rotates one pair. It moves 16 bytes, and reads angles that the heads
// of a row share.
struct RotatePairs {
  static constexpr int kMaxThreads = 256;
  struct Shared {};
  RopeParams p;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared&) const {
    const int64_t row_pairs = p.AllHeads() * p.half;
    const int64_t pairs = p.rows * row_pairs;
    for (int64_t pair = t.block * t.count + t.index; pair < pairs;
         pair += t.blocks * t.count) {
      const int64_t row = pair / row_pairs;
      const int64_t head = pair % row_pairs / p.half;
      const bool second = head >= p.tensors[0].count;
      const int64_t i = pair % p.half;
      const float cos = p.cos.raw()[row * p.half + i];
      const float sin = p.sin.raw()[row * p.half + i];
      float* x = second
                     ? PairOf(p.tensors[1], row, head - p.tensors[0].count, i)
                     : PairOf(p.tensors[0], row, head, i);
      const float a = x[0];
      const float b = x[p.half];
      x[0] = a * cos - b * sin;
      x[p.half] = b * cos + a * sin;
    }
  }

  TIERCEL_DEVICE float* PairOf(const RopeParams::Heads& tensor, int64_t row,
                               int64_t head, int64_t i) const {
    return tensor.x.raw() + row * tensor.stride + head * p.head_dim + i;
  }
};

}  // namespace

int RopeCuda(CUstream_st* stream, const RopeParams& p) {
  if (p.rows == 0) return 0;
  constexpr int kThreads = RotatePairs::kMaxThreads;
  return Launch(stream,
                TurnsFor(p.rows * p.AllHeads() * p.half, kThreads, kThreads),
                RotatePairs{p});
}

}  // namespace tiercel
