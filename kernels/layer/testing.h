#ifndef TIERCEL_KERNELS_LAYER_TESTING_H_
#define TIERCEL_KERNELS_LAYER_TESTING_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "kernels/layer/matmul.h"
#include "kernels/layer/packed_matrix.h"
#include "kernels/number/dtype.h"
#include "kernels/number/half.h"
#include "kernels/system/testing.h"
#include "tests/setup/draws.h"

namespace tiercel {

// Rows of a file, which each device packs in its own order.
class MatmulWeights {
 public:
  MatmulWeights(DType type, int64_t n, int64_t k, std::vector<std::byte> rows)
      : type_(type), n_(n), k_(k), source_(std::move(rows)) {}

  int64_t rows() const { return n_; }
  int64_t cols() const { return k_; }
  DType type() const { return type_; }
  const std::vector<std::byte>& source() const { return source_; }
  PackedMatrix Packed(PanelOrder order = PanelOrder::kLanes) const {
    PackedMatrix packed =
        *PackedMatrix::Create(type_, n_, k_, SystemMemory(), order);
    PackInto(packed, 0);
    return packed;
  }
  // Packs the rows as those of `packed` from `first` on.
  void PackInto(PackedMatrix& packed, int64_t first) const {
    for (int64_t r = 0; r < n_; ++r) {
      packed.PackRow(first + r, source_.data() + r * RowBytes(type_, k_));
    }
  }
  PackedMatrix PackedFor(Stream& stream) const {
    return *Packed(PackedMatrix::OrderFor(stream)).CopyTo(stream);
  }

 private:
  DType type_;
  int64_t n_;
  int64_t k_;
  std::vector<std::byte> source_;
};

inline std::vector<DType> EveryType() {
  std::vector<DType> types(std::size(kDTypeInfos));
  for (size_t i = 0; i < types.size(); ++i) types[i] = static_cast<DType>(i);
  return types;
}

// The offsets of the f16 in a block, by the format's layout.
inline std::vector<size_t> HalvesOf(DType type) {
  switch (type) {
    case DType::kF32:
    case DType::kBF16:
    case DType::kMXFP4:
      return {};
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {0, 2};
    case DType::kQ6_K:
      return {208};
    case DType::kQ3_K:
      return {108};
    case DType::kQ2_K:
      return {80, 82};
    default:
      return {0};
  }
}

// A matrix of random codes and scales around 1/16 of either sign.
inline MatmulWeights RandomWeights(DType type, int64_t n, int64_t k,
                                   unsigned seed) {
  std::mt19937 random(seed);
  UniformFloats uniform(-0.125f, 0.125f);
  std::vector<std::byte> rows(static_cast<size_t>(n * RowBytes(type, k)));
  const auto half = [&](size_t at) {
    const uint16_t bits = F16FromF32(uniform(random));
    std::memcpy(&rows[at], &bits, sizeof(bits));
  };
  const auto block_bytes = static_cast<size_t>(InfoOf(type).block_bytes);
  for (size_t at = 0; at < rows.size(); at += sizeof(uint32_t)) {
    const auto word = static_cast<uint32_t>(random());
    std::memcpy(&rows[at], &word, std::min(sizeof(word), rows.size() - at));
  }
  for (size_t at = 0; at < rows.size(); at += block_bytes) {
    const float value = uniform(random);
    if (type == DType::kF32) {
      std::memcpy(&rows[at], &value, sizeof(value));
    } else if (type == DType::kBF16) {
      const uint16_t bits = Bf16FromF32(value);
      std::memcpy(&rows[at], &bits, sizeof(bits));
    } else if (type == DType::kMXFP4) {
      rows[at] = static_cast<std::byte>(120 + random() % 4);
    } else {
      for (const size_t offset : HalvesOf(type)) half(at + offset);
    }
  }
  return {type, n, k, std::move(rows)};
}

// Every block of 32 has another magnitude, from 2^-8 to 2^8.
inline std::vector<float> RandomX(int64_t rows, int64_t stride, unsigned seed) {
  std::mt19937 random(seed);
  UniformFloats uniform(-2.0f, 2.0f);
  std::vector<float> x(static_cast<size_t>(rows * stride));
  float size = 1.0f;
  for (size_t i = 0; i < x.size(); ++i) {
    if (i % 32 == 0) size = std::exp2(static_cast<float>(random() % 17) - 8);
    x[i] = size * uniform(random);
  }
  return x;
}

struct MatmulOptions {
  Compute compute = Compute::kQ8;
  bool bias = false;
  StoreMode store = StoreMode::kAssign;
  int64_t x_gap = 4;  // after every row of x; some values align rows
  bool fast = false;
  float scale = 1.0f;
};

// One output of one matrix, with a gap after every row.
struct MatmulProblem {
  static constexpr int64_t kGap = 3;

  MatmulProblem(MatmulWeights w, int64_t num_rows, MatmulOptions o)
      : weights(std::move(w)),
        options(o),
        x(RandomX(num_rows, weights.cols() + o.x_gap, 11)),
        bias(RandomX(1, weights.rows(), 12)),
        before(RandomX(num_rows, weights.rows() + kGap, 13)),
        rows(num_rows) {}

  // Computes rows [begin, end) in one call.
  std::vector<float> Run(Stream& stream, int64_t begin, int64_t end) const {
    const int64_t x_stride = weights.cols() + options.x_gap;
    const int64_t out_stride = weights.rows() + kGap;
    std::vector<float> values(before.begin() + begin * out_stride,
                              before.begin() + end * out_stride);
    if (options.store == StoreMode::kAssign) {
      values.assign(values.size(), kPoison);
    }
    const PackedMatrix w = weights.PackedFor(stream);
    OnDevice<float> in(stream, std::vector<float>(x.begin() + begin * x_stride,
                                                  x.begin() + end * x_stride));
    OnDevice<float> added(stream, bias);
    OnDevice<float> out(stream, values);
    MatmulParams p = {};
    p.x = in.data();
    p.x_stride = x_stride;
    p.rows = end - begin;
    p.compute = options.compute;
    p.fast = options.fast;
    p.num_outputs = 1;
    p.scale = options.scale;
    p.outputs[0] = {&w, options.bias ? added.data() : nullptr, out.data(),
                    out_stride, options.store};
    const absl::Status status = Matmul(stream, p);
    EXPECT_TRUE(status.ok()) << status;
    return out.Read();
  }
  std::vector<float> Run(Stream& stream) const { return Run(stream, 0, rows); }

  // Tells problems with other results apart.
  std::string Key() const {
    const auto hash_of = [](const auto& values) {
      return std::hash<std::string_view>()(
          {reinterpret_cast<const char*>(values.data()),
           values.size() * sizeof(values[0])});
    };
    return absl::StrJoin(
        std::tuple(static_cast<int>(weights.type()), weights.rows(),
                   weights.cols(), hash_of(weights.source()), hash_of(x), rows,
                   static_cast<int>(options.compute), int{options.bias},
                   static_cast<int>(options.store), options.x_gap,
                   int{options.fast}, options.scale),
        " ");
  }

  MatmulWeights weights;
  MatmulOptions options;
  std::vector<float> x;
  std::vector<float> bias;
  std::vector<float> before;
  int64_t rows;
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_TESTING_H_
