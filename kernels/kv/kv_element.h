#ifndef TIERCEL_KERNELS_KV_KV_ELEMENT_H_
#define TIERCEL_KERNELS_KV_KV_ELEMENT_H_

// Rows of K and V as kernels read and write them.

#include <cmath>
#include <cstddef>
#include <limits>

#include "kernels/device/device_lang.h"
#include "kernels/number/dtype.h"
#include "kernels/number/half.h"

namespace tiercel {

// Elements that a warp writes at a time: a block of q8_0, which is an f16 scale
// and as many int8.
inline constexpr int kKvPiece = 32;
inline constexpr int kQ8Bytes = 34;
static_assert(kKvPiece == kWarpLanes);

// Element d of a row, exactly.
TIERCEL_DEVICE float KvElement(DType type, const std::byte* row, int d) {
  switch (type) {
    case DType::kF32:
      return reinterpret_cast<const float*>(row)[d];
    case DType::kF16:
      return F32FromF16(reinterpret_cast<const uint16_t*>(row)[d]);
    case DType::kBF16:
      return F32FromBf16(reinterpret_cast<const uint16_t*>(row)[d]);
    default: {
      const std::byte* block = row + d / kKvPiece * kQ8Bytes;
      const float scale = F32FromF16(*reinterpret_cast<const uint16_t*>(block));
      return scale *
             static_cast<float>(static_cast<int8_t>(block[2 + d % kKvPiece]));
    }
  }
}

// Writes a block of q8_0, of which a lane brings one element.
TIERCEL_DEVICE void WriteQ8Block(float x, int lane, std::byte* block) {
  const bool finite = Ballot(kAllLanes, std::isfinite(x)) == kAllLanes;
  float max = std::fabs(x);
  for (int bits = kWarpLanes / 2; bits > 0; bits /= 2) {
    max = std::fmax(max, ShuffleXor(kAllLanes, max, bits));
  }
  const float d =
      finite ? max / 127.0f : std::numeric_limits<float>::quiet_NaN();
  if (lane == 0) *reinterpret_cast<uint16_t*>(block) = F16FromF32(d);
  // Where d is subnormal it has few bits, and the quotient can pass 127.
  const float q =
      d > 0.0f ? std::fmin(std::fmax(std::nearbyint(x / d), -127.0f), 127.0f)
               : 0.0f;
  block[2 + lane] = static_cast<std::byte>(static_cast<int8_t>(q));
}

// Writes elements d.. of a row of head_dim, of which a lane of the warp brings
// one, rounded as KvRowFromF32 of kv_row.h rounds.
TIERCEL_DEVICE void WriteKvPiece(DType type, float x, int d, int head_dim,
                                 int lane, std::byte* row) {
  if (type == DType::kQ8_0) {
    WriteQ8Block(x, lane, row + d / kKvPiece * kQ8Bytes);
    return;
  }
  const int i = d + lane;
  if (i >= head_dim) return;
  if (type == DType::kF32) {
    reinterpret_cast<float*>(row)[i] = x;
  } else {
    reinterpret_cast<uint16_t*>(row)[i] =
        type == DType::kF16 ? F16FromF32(x) : Bf16FromF32(x);
  }
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_KV_ELEMENT_H_
