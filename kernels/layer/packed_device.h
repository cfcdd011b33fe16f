#ifndef TIERCEL_KERNELS_LAYER_PACKED_DEVICE_H_
#define TIERCEL_KERNELS_LAYER_PACKED_DEVICE_H_

// Packed weights as kernels read them; packed_layout.h says where they lie.

#include "kernels/device/device_lang.h"
#include "kernels/layer/packed_layout.h"
#include "kernels/number/half.h"

namespace tiercel {

// The blocks of a panel of quantised weights.
template <DType kType>
struct PackedBlocks {
  static constexpr PackedLayout kLayout = LayoutOf(kType);
  static constexpr int kGroup = GroupBlocks(kLayout.scales);
  static constexpr int kCodeWords = CodeBytes(kLayout.codes) / 4;
  static constexpr int kGroupHalves = GroupBytes(kLayout.scales) / 2;
  static constexpr bool kHasHalves = kLayout.scales == ScaleLayout::kK6;
  static constexpr int kOffset =
      kLayout.offset_bits > 0 ? 1 << kLayout.offset_bits : 0;

  struct Scales {
    float d;
    float m;           // where the type has a minimum
    int of_halves[2];  // Q6_K's
  };

  // Quads 2 pair and 2 pair + 1 of a block, of one row of the panel.
  static TIERCEL_DEVICE void ReadQuads(const uint32_t* block, int pair, int row,
                                       uint32_t (&quads)[2]) {
    if constexpr (kLayout.codes == CodeLayout::k8) {
      quads[0] = block[2 * pair * kPanelRows + row];
      quads[1] = block[(2 * pair + 1) * kPanelRows + row];
    } else {
      const uint32_t both = block[pair * kPanelRows + row];
      quads[0] = both & 0x0f0f0f0fu;
      quads[1] = both >> 4 & 0x0f0f0f0fu;
    }
    if constexpr (kLayout.codes == CodeLayout::k6) {
      const uint32_t high =
          block[(4 + pair / 2) * kPanelRows + row] >> (pair % 2 * 4);
      quads[0] |= (high & 0x03030303u) << 4;
      quads[1] |= (high >> 2 & 0x03030303u) << 4;
    }
  }

  // The scales of block j of a group.
  static TIERCEL_DEVICE Scales ReadScales(const uint16_t* group, int j,
                                          int row) {
    const auto byte = [&](int i) { return group[i / 2] >> (i % 2 * 8) & 0xff; };
    Scales s = {F32FromF16(group[row]), 0.0f, {1, 1}};
    if constexpr (HasMin(kLayout.scales)) {
      s.m = F32FromF16(group[kPanelRows + row]);
    }
    if constexpr (kLayout.scales == ScaleLayout::kK) {
      s.d *= static_cast<float>(byte(64 + 2 * j * kPanelRows + row));
      s.m *= static_cast<float>(byte(64 + (2 * j + 1) * kPanelRows + row));
    }
    if constexpr (kHasHalves) {
      for (int h = 0; h < 2; ++h) {
        s.of_halves[h] =
            static_cast<int8_t>(byte(32 + (2 * j + h) * kPanelRows + row));
      }
    }
    return s;
  }

  // Weight i of block `block` of row `row`.
  static TIERCEL_DEVICE float Get(const uint8_t* panel, int64_t blocks,
                                  int64_t block, int row, int i) {
    const auto* codes = reinterpret_cast<const uint32_t*>(panel);
    const auto* groups =
        reinterpret_cast<const uint16_t*>(panel + blocks * (4 * kCodeWords));
    const Scales s = ReadScales(groups + block / kGroup * kGroupHalves,
                                static_cast<int>(block % kGroup), row);
    uint32_t quads[2];
    ReadQuads(codes + block * kCodeWords, i / 8, row, quads);
    return Get(s, quads, i);
  }
  // Weight i of the block that has these scales, in the two quads it is in.
  static TIERCEL_DEVICE float Get(const Scales& s, const uint32_t (&quads)[2],
                                  int i) {
    // Indices of registers have to be constants.
    const uint32_t quad = i / 4 % 2 == 0 ? quads[0] : quads[1];
    const int of_half = i < 16 ? s.of_halves[0] : s.of_halves[1];
    const int code = static_cast<int>(quad >> (i % 4 * 8) & 0xffu);
    const float w =
        s.d * static_cast<float>(of_half) * static_cast<float>(code - kOffset);
    return HasMin(kLayout.scales) ? w + s.m : w;
  }
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_PACKED_DEVICE_H_
