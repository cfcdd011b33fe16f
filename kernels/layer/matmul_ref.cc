#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/layer/matmul.h"
#include "kernels/layer/matmul_body.h"
#include "kernels/layer/packed_layout.h"
#include "kernels/number/reference_math.h"

namespace tiercel {
namespace {

float CodeOf(float x, float scale) {
  return std::clamp(std::nearbyint(x / scale), -127.0f, 127.0f);
}

float RoundingError(const float* x, float scale) {
  float lane[16];
  for (int i = 0; i < 16; ++i) {
    const float low = std::fma(-scale, CodeOf(x[i], scale), x[i]);
    const float high = std::fma(-scale, CodeOf(x[i + 16], scale), x[i + 16]);
    lane[i] = std::fma(high, high, low * low);
  }
  return SumLanes(lane);
}

Q8Block QuantiseReference(const float* x) {
  Q8Block block = {};
  bool finite = true;
  float max = 0.0f;
  for (int i = 0; i < 32; ++i) {
    finite = finite && std::isfinite(x[i]);
    max = std::max(max, std::abs(x[i]));
  }
  if (!finite) {
    block.scale = std::numeric_limits<float>::quiet_NaN();
    return block;
  }
  block.scale = max / kQ8Steps[0];
  if (block.scale == 0.0f) return block;
  float least = RoundingError(x, block.scale);
  for (float steps : kQ8Steps) {
    const float error = RoundingError(x, max / steps);
    if (error < least) {
      least = error;
      block.scale = max / steps;
    }
  }
  for (int i = 0; i < 32; ++i) {
    block.codes[i] = static_cast<int8_t>(CodeOf(x[i], block.scale));
  }
  return block;
}

float ChainQ8(const std::vector<WeightBlock>& weights, const Q8Block* x) {
  float acc = 0.0f;
  for (const WeightBlock& w : weights) {
    int dot = 0;
    int sum = 0;
    for (int i = 0; i < 32; ++i) {
      dot += w.half_scales[i / 16] * w.codes[i] * x->codes[i];
      sum += w.half_mins[i / 16] * x->codes[i];
    }
    acc = std::fma(static_cast<float>(dot), w.scale * x->scale, acc);
    if (w.has_min) {
      acc = std::fma(w.min, x->scale * static_cast<float>(sum), acc);
    }
    ++x;
  }
  return acc;
}

float ChainF32(const std::vector<float>& weights, const float* x) {
  float acc = 0.0f;
  for (const float w : weights) acc = std::fma(*x++, w, acc);
  return acc;
}

void StoreReference(float value, const MatmulOutput& output, float scale,
                    int64_t row, int64_t column) {
  float& out = output.out.raw()[row * output.out_stride + column];
  if (output.bias != nullptr) value += output.bias.raw()[column];
  value *= scale;
  out = output.store == StoreMode::kAdd ? value + out : value;
}

}  // namespace

void MatmulReference(const MatmulParams& p, const MatmulOutput& output,
                     int64_t n_begin, int64_t n_end) {
  const PackedMatrix& matrix = *output.weights;
  if (p.compute == Compute::kF32 || !IsQuantised(matrix.type())) {
    std::vector<float> weights(static_cast<size_t>(matrix.cols()));
    for (int64_t n = n_begin; n < n_end; ++n) {
      matrix.UnpackRow(n, weights.data());
      for (int64_t r = 0; r < p.rows; ++r) {
        StoreReference(ChainF32(weights, p.x.raw() + r * p.x_stride), output,
                       p.scale, r, n);
      }
    }
    return;
  }
  const int64_t blocks = matrix.cols() / 32;
  std::vector<Q8Block> x(static_cast<size_t>(p.rows * blocks));
  for (int64_t i = 0; i < p.rows * blocks; ++i) {
    x[static_cast<size_t>(i)] = QuantiseReference(
        p.x.raw() + i / blocks * p.x_stride + i % blocks * 32);
  }
  std::vector<WeightBlock> weights(static_cast<size_t>(blocks));
  for (int64_t n = n_begin; n < n_end; ++n) {
    for (int64_t b = 0; b < blocks; ++b) {
      weights[static_cast<size_t>(b)] = matrix.UnpackBlock(n, b);
    }
    for (int64_t r = 0; r < p.rows; ++r) {
      StoreReference(ChainQ8(weights, x.data() + r * blocks), output, p.scale,
                     r, n);
    }
  }
}

}  // namespace tiercel
