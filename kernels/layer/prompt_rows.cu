// Bytes: of x 4 an element read and 2 written; of products 4 read, 4 written.
// Operations: a rounding an element; the bias and what was there, a product.
// Bound by: memory.

#include "kernels/device/device_lang.h"
#include "kernels/layer/matmul_body.h"
#include "kernels/number/half.h"

namespace tiercel {
namespace {

constexpr int kThreads = 256;

// A thread rounds one element; rows past the end are zeros.
struct RoundRows {
  static constexpr int kMaxThreads = kThreads;
  struct Shared {};
  const float* x;
  int64_t x_stride;
  int64_t rows;
  int64_t elements;  // of all rows of `out`
  int64_t k;
  DType type;
  uint16_t* out;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared&) const {
    for (int64_t i = t.block * t.count + t.index; i < elements;
         i += t.blocks * t.count) {
      const int64_t row = i / k;
      const float value = row < rows ? x[row * x_stride + i % k] : 0.0f;
      out[i] = type == DType::kF16 ? F16FromF32(value) : Bf16FromF32(value);
    }
  }
};

// A thread puts one product to its place.
struct StoreRows {
  static constexpr int kMaxThreads = kThreads;
  struct Shared {};
  const float* products;  // [rows, target.n]
  int64_t rows;
  MatmulTarget target;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared&) const {
    for (int64_t i = t.block * t.count + t.index; i < rows * target.n;
         i += t.blocks * t.count) {
      const int64_t column = i % target.n;
      float& out = target.out[i / target.n * target.out_stride + column];
      float value = products[i];
      if (target.bias != nullptr) value += target.bias[column];
      out = target.add ? value + out : value;
    }
  }
};

}  // namespace

int RoundRowsCuda(CUstream_st* stream, const float* x, int64_t x_stride,
                  int64_t rows, int64_t all_rows, int64_t k, DType type,
                  uint16_t* out) {
  return Launch(stream, TurnsFor(all_rows * k, kThreads, kThreads),
                RoundRows{x, x_stride, rows, all_rows * k, k, type, out});
}

int StoreRowsCuda(CUstream_st* stream, const float* products, int64_t rows,
                  const MatmulTarget& target) {
  return Launch(stream, TurnsFor(rows * target.n, kThreads, kThreads),
                StoreRows{products, rows, target});
}

}  // namespace tiercel
