#ifndef TIERCEL_KERNELS_ATTENTION_TESTING_H_
#define TIERCEL_KERNELS_ATTENTION_TESTING_H_

// Helpers for tests of attention: a problem with hidden faults, and its
// solution.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/attention/attention.h"
#include "kernels/kv/kv_row.h"
#include "kernels/kv/testing.h"
#include "kernels/system/testing.h"
#include "tests/setup/draws.h"

namespace tiercel {

// The ISAs that have a body of attention; avx512vnni uses that of avx512.
inline std::vector<Isa> AttentionIsas() {
  std::vector<Isa> isas = SupportedIsas();
  if (isas.back() == Isa::kAvx512Vnni) isas.pop_back();
  return isas;
}

inline std::vector<Backend> AttentionBackends() {
  std::vector<Backend> backends = FastBackends();
  std::erase_if(backends, [](const Backend& backend) {
    return backend.device == DeviceKind::kCpu &&
           backend.isa == Isa::kAvx512Vnni;
  });
  return backends;
}

// A view of one KV head.
struct ViewCase {
  std::vector<PositionRange> fixed;
  int64_t recent = kAllPositions;
};

struct Case {
  int heads = 1;
  int kv_heads = 1;
  int head_dim = 8;
  DType type_k = DType::kF32;
  DType type_v = DType::kF32;
  int64_t begin = 0;
  int64_t position = 0;
  int64_t rows = 1;
  std::vector<ViewCase> views = {};  // [kv_heads], or empty: no view
};

inline std::string NameOfCase(const Case& c) {
  std::string name;
  for (int64_t n : {int64_t{c.heads}, int64_t{c.kv_heads}, int64_t{c.head_dim},
                    c.begin, c.position, c.rows}) {
    name += std::to_string(n) + " ";
  }
  name += std::string(InfoOf(c.type_k).name) + " " +
          std::string(InfoOf(c.type_v).name);
  for (const ViewCase& view : c.views) {
    name += " recent " + std::to_string(view.recent);
    for (const PositionRange& range : view.fixed) {
      name +=
          " " + std::to_string(range.begin) + "-" + std::to_string(range.end);
    }
  }
  return name;
}

// The queries and pages of a case. All bytes of the pages are 0xff, which is
// NaN in all types (q8_0: a NaN scale), but for rows of K and V that some row
// sees. If there is a view, pages that no row sees are null.
class Problem {
 public:
  explicit Problem(const Case& c)
      : case_(c),
        layout_{c.type_k, c.type_v, c.kv_heads, c.head_dim},
        first_page_(c.begin / kPageTokens),
        q_stride_(int64_t{c.heads} * c.head_dim + 3) {
    std::mt19937 random(1234);
    NormalFloats normal;
    q_.resize(static_cast<size_t>(c.rows * q_stride_));
    for (float& x : q_) x = normal(random);
    const int64_t end = c.position + c.rows;
    for (int64_t page = first_page_; page * kPageTokens < end; ++page) {
      bytes_.emplace_back(static_cast<size_t>(layout_.PageBytes()),
                          std::byte{0xff});
    }
    for (auto& page : bytes_) {
      pages_.push_back(c.views.empty() ? InPlace(page.data()) : nullptr);
    }
    std::vector<float> row(static_cast<size_t>(c.head_dim));
    for (int64_t j = c.begin; j < end; ++j) {
      for (int head = 0; head < c.kv_heads; ++head) {
        if (!SeenByAny(head, j)) continue;
        const auto page = static_cast<size_t>(j / kPageTokens - first_page_);
        pages_[page] = InPlace(bytes_[page].data());
        for (float& x : row) x = normal(random);
        KvRowFromF32(c.type_k, row.data(), c.head_dim, K(j, head));
        for (float& x : row) x = normal(random);
        KvRowFromF32(c.type_v, row.data(), c.head_dim, V(j, head));
      }
    }
    for (const ViewCase& view : case_.views) {
      views_.push_back({.fixed = view.fixed, .recent = view.recent});
    }
  }
  Problem(const Problem&) = delete;

  // The definition of HeadView, written out.
  bool Sees(int head, int64_t t, int64_t j) const {
    if (j < case_.begin || j > t) return false;
    if (case_.views.empty()) return true;
    const ViewCase& view = case_.views[static_cast<size_t>(head)];
    if (j > t - view.recent) return true;
    for (const PositionRange& range : view.fixed) {
      if (range.begin <= j && j < range.end) return true;
    }
    return false;
  }
  bool SeenByAny(int head, int64_t j) const {
    for (int64_t r = 0; r < case_.rows; ++r) {
      if (Sees(head, case_.position + r, j)) return true;
    }
    return false;
  }

  const Case& c() const { return case_; }
  const std::vector<float>& q() const { return q_; }
  float* Query(int64_t row) { return q_.data() + row * q_stride_; }
  std::byte* K(int64_t t, int head) {
    return bytes_[static_cast<size_t>(t / kPageTokens - first_page_)].data() +
           layout_.KOffset(head, static_cast<int>(t % kPageTokens));
  }
  std::byte* V(int64_t t, int head) {
    return bytes_[static_cast<size_t>(t / kPageTokens - first_page_)].data() +
           layout_.VOffset(head, static_cast<int>(t % kPageTokens));
  }

  AttentionParams Params() const {
    AttentionParams p;
    p.q = InPlace(q_.data());
    p.q_stride = q_stride_;
    p.rows = case_.rows;
    p.heads = case_.heads;
    p.scale = 1.0f / std::sqrt(static_cast<float>(case_.head_dim));
    p.layout = layout_;
    p.pages = pages_.data();
    p.first_page = first_page_;
    p.num_pages = static_cast<int64_t>(pages_.size());
    p.begin = case_.begin;
    p.position = case_.position;
    p.view = views_.empty() ? nullptr : views_.data();
    p.out = nullptr;
    return p;
  }

  // Computes rows row..row + rows - 1: [rows, heads * head_dim].
  std::vector<float> Run(Stream& stream, int64_t row, int64_t rows) const {
    return Run(stream, row, rows, Attention);
  }
  // Computes them by `op` instead of Attention.
  template <typename Op>
  std::vector<float> Run(Stream& stream, int64_t row, int64_t rows,
                         Op op) const {
    AttentionParams p = Params();
    OnDevice<float> q(stream, q_);
    OnDevicePages pages(stream, pages_, layout_.PageBytes());
    OnDevice<float> out(
        stream,
        std::vector<float>(
            static_cast<size_t>(rows * p.heads * p.layout.head_dim), kPoison));
    p.q = q.data() + row * q_stride_;
    p.pages = pages.data();
    p.position += row;
    p.rows = rows;
    p.out = out.data();
    const absl::Status status = op(stream, p);
    pages.Forget();
    EXPECT_TRUE(status.ok()) << status;
    return out.Read();
  }
  std::vector<float> Run(Stream& stream) const {
    return Run(stream, 0, case_.rows);
  }

 private:
  Case case_;
  KvLayout layout_;
  int64_t first_page_;
  int64_t q_stride_;
  std::vector<float> q_;
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<DevicePtr<std::byte>> pages_;
  std::vector<HeadView> views_;
};

// The relative errors of a body that rounds more than the results of sums.
struct Rounded {
  double product = 0;  // a query times a key
  double term = 0;     // a weight times a value
};

// Compares with softmax attention in double, within a bound on the error of
// float arithmetic. A score is off by at most (head_dim + 1) roundings of the
// sum of magnitudes, which is a relative error of its weight; sums over n
// positions and the folds of their pages add n + 4 * pages roundings, and Exp
// adds 1e-7 each.
inline void ExpectNearSoftmax(Problem& problem, const std::vector<float>& out,
                              const Rounded& rounded = {}) {
  constexpr double kRounding = 0x1p-24;
  const Case& c = problem.c();
  const AttentionParams p = problem.Params();
  const auto dim = static_cast<size_t>(c.head_dim);
  std::vector<float> row(dim);
  for (int64_t r = 0; r < c.rows; ++r) {
    const int64_t t = c.position + r;
    const auto n = static_cast<size_t>(t - c.begin + 1);
    for (int h = 0; h < c.heads; ++h) {
      const int kv_head = h / (c.heads / c.kv_heads);
      const float* q = problem.Query(r) + h * c.head_dim;
      std::vector<double> score(n);
      double max = -1e300;
      double score_error = 0;
      for (size_t j = 0; j < n; ++j) {
        if (!problem.Sees(kv_head, t, c.begin + static_cast<int64_t>(j))) {
          continue;
        }
        KvRowToF32(c.type_k,
                   problem.K(c.begin + static_cast<int64_t>(j), kv_head),
                   c.head_dim, row.data());
        double dot = 0;
        double magnitude = 0;
        for (size_t d = 0; d < dim; ++d) {
          dot += static_cast<double>(q[d]) * row[d];
          magnitude += std::fabs(static_cast<double>(q[d]) * row[d]);
        }
        score[j] = dot * p.scale;
        max = std::max(max, score[j]);
        score_error = std::max(
            score_error, ((c.head_dim + 1) * kRounding + rounded.product) *
                             magnitude * p.scale);
      }
      double sum = 0;
      std::vector<double> expected(dim, 0.0);
      std::vector<double> magnitude(dim, 0.0);
      for (size_t j = 0; j < n; ++j) {
        if (!problem.Sees(kv_head, t, c.begin + static_cast<int64_t>(j))) {
          continue;
        }
        const double weight = std::exp(score[j] - max);
        sum += weight;
        KvRowToF32(c.type_v,
                   problem.V(c.begin + static_cast<int64_t>(j), kv_head),
                   c.head_dim, row.data());
        for (size_t d = 0; d < dim; ++d) {
          expected[d] += weight * row[d];
          magnitude[d] += weight * std::fabs(row[d]);
        }
      }
      const double pages = static_cast<double>(n) / kPageTokens + 2;
      const double relative =
          2 *
          (2 * score_error + rounded.term + 1e-7 * (1 + pages) +
           (std::min(static_cast<double>(n), 1.0 * kPageTokens) + 4 * pages) *
               kRounding);
      for (size_t d = 0; d < dim; ++d) {
        const size_t i = static_cast<size_t>(r * c.heads + h) * dim + d;
        ASSERT_NEAR(out[i], expected[d] / sum, relative * magnitude[d] / sum)
            << NameOfCase(c) << ": row " << r << " head " << h << " " << d;
      }
    }
  }
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_ATTENTION_TESTING_H_
