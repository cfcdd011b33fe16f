#ifndef TIERCEL_KERNELS_LAYER_MATMUL_DEVICE_H_
#define TIERCEL_KERNELS_LAYER_MATMUL_DEVICE_H_

// Functions that all kernels of products share.

#include <string.h>

#include <type_traits>

#include "kernels/device/device_lang.h"
#include "kernels/layer/matmul_body.h"
#include "kernels/layer/packed_layout.h"
#include "kernels/number/half.h"

namespace tiercel {

// a must be above 0. This form takes fewer registers than (a + b - 1) / b.
constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a - 1) / b + 1; }

TIERCEL_DEVICE void StoreProduct(const MatmulTarget& target, float scale,
                                 int64_t row, int64_t column, float value) {
  float& out = target.out[row * target.out_stride + column];
  if (target.bias != nullptr) value += target.bias[column];
  value *= scale;
  out = target.add ? value + out : value;
}

// A weight of a type that is not quantised: its bits, and their value.
template <DType kType>
using WordOf = std::conditional_t<kType == DType::kF32, uint32_t, uint16_t>;
template <DType kType>
TIERCEL_DEVICE float FloatOf(uint32_t bits) {
  if constexpr (kType == DType::kF16) {
    return F32FromF16(static_cast<uint16_t>(bits));
  } else if constexpr (kType == DType::kBF16) {
    return F32FromBf16(static_cast<uint16_t>(bits));
  } else {
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
  }
}

// Weight i of a packet.
template <DType kType>
TIERCEL_DEVICE float WeightOf(const Packet<uint32_t>& words, int i) {
  constexpr int kInWord = sizeof(uint32_t) / sizeof(WordOf<kType>);
  return FloatOf<kType>(words[i / kInWord] >> (i % kInWord * 16));
}

// The sum of the codes of half a block; `halves` is that of Q8Fragments.
TIERCEL_DEVICE int SumOf(uint32_t halves, int half) {
  return static_cast<int16_t>(halves >> (16 * half));
}

// Four codes for the matrix unit, which takes int8. An offset of 128 is
// subtracted here; other codes fit an int8 unchanged, and OffsetLeft is
// subtracted from sums later.
template <DType kType>
TIERCEL_DEVICE uint32_t Signed(uint32_t quad) {
  return OffsetOf(LayoutOf(kType)) == 128 ? quad ^ 0x80808080u : quad;
}
constexpr int OffsetLeft(DType type) {
  const int offset = OffsetOf(LayoutOf(type));
  return offset == 128 ? 0 : offset;
}

// The number of groups of `columns` columns that all targets have, one after
// the other.
inline int64_t GroupsOfAll(const MatmulTargets& targets, int columns) {
  int64_t groups = 0;
  for (int i = 0; i < targets.count; ++i) {
    groups += CeilDiv(targets.of[i].n, columns);
  }
  return groups;
}

// The target that has group `group` of all; `group` becomes the group's number
// in it. The loop is unrolled, so that parameters are not copied to a stack.
TIERCEL_DEVICE MatmulTarget TargetWith(const MatmulTargets& targets,
                                       int columns, int64_t& group) {
  MatmulTarget target = targets.of[0];
#pragma unroll
  for (int i = 1; i < MatmulTargets::kMost; ++i) {
    const int64_t before = CeilDiv(target.n, columns);
    if (i >= targets.count || group < before) break;
    group -= before;
    target = targets.of[i];
  }
  return target;
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_MATMUL_DEVICE_H_
