// Bytes: of x 4 an element read, twice, and 2 written; of products 4 read, 4
// written.
// Operations: a comparison and a rounding an element; for a product its scale,
// the bias and the old value.
// Bound by: memory.

#include <bit>
#include <cmath>

#include "kernels/device/block_sums.h"
#include "kernels/device/device_lang.h"
#include "kernels/layer/fast_matmul.h"
#include "kernels/layer/matmul_device.h"
#include "kernels/number/half.h"

namespace tiercel {
namespace {

constexpr int kThreads = 256;

// The factor `to` of a row that keeps its elements within the type's range when
// they are rounded, and `back`, which undoes it. Both are powers of two, which
// are exact, except for elements so small that the type has few bits for them.
// Rows that are not finite stay so.
struct RowScale {
  float to;
  float back;
};
TIERCEL_DEVICE RowScale ScaleOf(float max, DType type) {
  // The greatest exponent whose numbers stay finite however they are rounded.
  const int most = type == DType::kF16 ? 14 : 126;
  const int exponent =
      static_cast<int>(std::bit_cast<uint32_t>(max) >> 23) - 127;
  const int over = exponent - most;
  if (over <= 0) return {1.0f, 1.0f};
  const auto power = [](int n) {
    return std::bit_cast<float>(static_cast<uint32_t>(127 + n) << 23);
  };
  return {power(-over), power(over)};
}

// The order of rounded rows: [row][k], or F16Fragments.
enum class RowOrder { kRows, kFragments };

// A block rounds one row. Rows past the end become zeros.
template <RowOrder kOrder>
struct RoundRows {
  static constexpr int kMaxThreads = kThreads;
  struct Shared {
    Array<float, kWarpLanes> of_warps;
  };
  const float* x;
  int64_t x_stride;
  int64_t rows;
  int64_t all_rows;
  int64_t k;
  DType type;
  uint16_t* out;
  float* back;

  // The place of element i of a row.
  TIERCEL_DEVICE int64_t At(int64_t row, int64_t i) const {
    if constexpr (kOrder == RowOrder::kRows) return row * k + i;
    const int lane = static_cast<int>(row % 8 * 4 + i % 16 / 4);
    const int half = static_cast<int>(i % 32 / 16);
    return (row / 8 * (k / 32) + i / 32) * 256 + lane * 8 + half * 4 + i % 4;
  }

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& shared) const {
    for (int64_t row = t.block; row < all_rows; row += t.blocks) {
      float max = 0.0f;
      for (int64_t i = t.index; i < k && row < rows; i += t.count) {
        max = MaxOrNan(max, std::fabs(x[row * x_stride + i]));
      }
      const RowScale scale = ScaleOf(MaxOfBlock(t, max, shared.of_warps), type);
      for (int64_t i = t.index; i < k; i += t.count) {
        const float value =
            row < rows ? x[row * x_stride + i] * scale.to : 0.0f;
        out[At(row, i)] =
            type == DType::kF16 ? F16FromF32(value) : Bf16FromF32(value);
      }
      if (t.index == 0) back[row] = scale.back;
    }
  }
};

// A thread stores one product in its target.
struct StoreRows {
  static constexpr int kMaxThreads = kThreads;
  struct Shared {};
  const float* products;  // [rows, target.n]
  const float* back;      // [rows]
  int64_t rows;
  ScaledTarget target;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared&) const {
    for (int64_t i = t.block * t.count + t.index; i < rows * target.n;
         i += t.blocks * t.count) {
      const int64_t row = i / target.n;
      const int64_t column = i % target.n;
      StoreProduct(target, target.scale, row, column, products[i] * back[row]);
    }
  }
};

}  // namespace

TIERCEL_KERNEL_BODY(RoundRowsCuda, CUstream_st* stream, const float* x,
                    int64_t x_stride, int64_t rows, int64_t all_rows, int64_t k,
                    DType type, uint16_t* out, float* back) {
  return Launch(stream, TurnsFor(all_rows, 1, kThreads),
                RoundRows<RowOrder::kRows>{x, x_stride, rows, all_rows, k, type,
                                           out, back});
}

TIERCEL_KERNEL_BODY(RoundFragmentsCuda, CUstream_st* stream, const float* x,
                    int64_t x_stride, int64_t rows, int64_t k,
                    F16Fragments* out, float* back) {
  const int64_t all_rows = WholeTiles(rows);
  return Launch(stream, TurnsFor(all_rows, 1, kThreads),
                RoundRows<RowOrder::kFragments>{
                    x, x_stride, rows, all_rows, k, DType::kF16,
                    reinterpret_cast<uint16_t*>(out), back});
}

TIERCEL_KERNEL_BODY(StoreRowsCuda, CUstream_st* stream, const float* products,
                    const float* back, int64_t rows,
                    const ScaledTarget& target) {
  return Launch(stream, TurnsFor(rows * target.n, kThreads, kThreads),
                StoreRows{products, back, rows, target});
}

}  // namespace tiercel
