// Bytes: a row of the table read and 4 an element written.
// Operations: 1 f32 an element, and 2 more of a quantised row.
// Bound by: the launch for one row, memory for a prompt.

#include "kernels/device/device_lang.h"
#include "kernels/layer/embed.h"
#include "kernels/layer/packed_device.h"

namespace tiercel {
namespace {

// A warp unpacks 32 elements of a row, a block of a quantised type.
template <DType kType>
struct UnpackRows {
  static constexpr int kMaxThreads = 128;
  struct Shared {};
  EmbedRows p;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared&) const {
    const int64_t row_blocks = (p.cols - 1) / kWarpLanes + 1;
    const int64_t warps = t.count / kWarpLanes;
    for (int64_t i = t.block * warps + t.warp(); i < p.rows * row_blocks;
         i += t.blocks * warps) {
      const int64_t row = i / row_blocks;
      const int64_t k = i % row_blocks * kWarpLanes + t.lane();
      if (k >= p.cols) continue;
      const int32_t id = p.ids[row];
      p.out[row * p.cols + k] =
          p.scale *
          Get(p.panels + id / kPanelRows * p.panel_bytes, id % kPanelRows, k);
    }
  }

  TIERCEL_DEVICE float Get(const uint8_t* panel, int lane, int64_t k) const {
    if constexpr (IsQuantised(kType)) {
      return PackedBlocks<kType>::Get(panel, p.cols / 32, k / 32, lane,
                                      static_cast<int>(k % 32));
    } else if constexpr (kType == DType::kF32) {
      return reinterpret_cast<const float*>(panel)[lane * p.cols + k];
    } else {
      const uint16_t bits =
          reinterpret_cast<const uint16_t*>(panel)[lane * p.cols + k];
      return kType == DType::kF16 ? F32FromF16(bits) : F32FromBf16(bits);
    }
  }
};

}  // namespace

TIERCEL_KERNEL_BODY(EmbedCuda, CUstream_st* stream, DType type,
                    const EmbedRows& p) {
  const int64_t warps = p.rows * ((p.cols - 1) / kWarpLanes + 1);
  return WithWeightType(type, [&]<DType kType>() {
    constexpr int kThreads = UnpackRows<kType>::kMaxThreads;
    return Launch(stream, TurnsFor(warps, kThreads / kWarpLanes, kThreads),
                  UnpackRows<kType>{p});
  });
}

}  // namespace tiercel
