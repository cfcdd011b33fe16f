#include "kernels/attention/attention.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/base/error.h"
#include "kernels/base/testing.h"
#include "kernels/kv/kv_row.h"

namespace tiercel {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Case {
  int heads = 1;
  int kv_heads = 1;
  int head_dim = 8;
  DType type_k = DType::kF32;
  DType type_v = DType::kF32;
  int64_t begin = 0;
  int64_t position = 0;
  int64_t rows = 1;
};

std::string NameOfCase(const Case& c) {
  std::string name;
  for (int64_t n : {int64_t{c.heads}, int64_t{c.kv_heads}, int64_t{c.head_dim},
                    c.begin, c.position, c.rows}) {
    name += std::to_string(n) + " ";
  }
  return name + std::string(InfoOf(c.type_k).name) + " " +
         std::string(InfoOf(c.type_v).name);
}

// Queries and pages of a case. Every byte of the pages outside of positions
// begin..position + rows - 1 is 0xff: NaN in all types (q8_0: a NaN scale).
class Problem {
 public:
  explicit Problem(const Case& c)
      : case_(c),
        layout_{c.type_k, c.type_v, c.kv_heads, c.head_dim},
        first_page_(c.begin / kPageTokens),
        q_stride_(int64_t{c.heads} * c.head_dim + 3) {
    std::mt19937 random(1234);
    std::normal_distribution<float> normal;
    q_.resize(static_cast<size_t>(c.rows * q_stride_));
    for (float& x : q_) x = normal(random);
    const int64_t end = c.position + c.rows;
    for (int64_t page = first_page_; page * kPageTokens < end; ++page) {
      bytes_.emplace_back(static_cast<size_t>(layout_.PageBytes()),
                          std::byte{0xff});
    }
    for (auto& page : bytes_) pages_.push_back(page.data());
    std::vector<float> row(static_cast<size_t>(c.head_dim));
    for (int64_t t = c.begin; t < end; ++t) {
      for (int head = 0; head < c.kv_heads; ++head) {
        for (float& x : row) x = normal(random);
        KvRowFromF32(c.type_k, row.data(), c.head_dim, K(t, head));
        for (float& x : row) x = normal(random);
        KvRowFromF32(c.type_v, row.data(), c.head_dim, V(t, head));
      }
    }
  }

  const Case& c() const { return case_; }
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
    p.q = q_.data();
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
    p.out = nullptr;
    return p;
  }

  // Rows row..row + rows - 1, [rows, heads * head_dim].
  std::vector<float> Run(Stream& stream, int64_t row, int64_t rows) const {
    AttentionParams p = Params();
    p.q += row * q_stride_;
    p.position += row;
    p.rows = rows;
    std::vector<float> out(
        static_cast<size_t>(rows * p.heads * p.layout.head_dim), kPoison);
    p.out = out.data();
    const absl::Status status = Attention(stream, p);
    EXPECT_TRUE(status.ok()) << status;
    return out;
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
  std::vector<const std::byte*> pages_;
};

bool AllFinite(const std::vector<float>& values) {
  for (float x : values) {
    if (!std::isfinite(x)) return false;
  }
  return true;
}

// Softmax attention of one query in double, and a bound on the error of float
// arithmetic: a score is off by at most (head_dim + 1) roundings of the sum of
// magnitudes, which is a relative error of its weight; sums over n positions
// and the folds of their pages add n + 4 pages roundings and Exp 1e-7 each.
void ExpectNearSoftmax(Problem& problem, const std::vector<float>& out) {
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
            score_error, (c.head_dim + 1) * kRounding * magnitude * p.scale);
      }
      double sum = 0;
      std::vector<double> expected(dim, 0.0);
      std::vector<double> magnitude(dim, 0.0);
      for (size_t j = 0; j < n; ++j) {
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
          (2 * score_error + 1e-7 * (1 + pages) +
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

// Both ends of pages, one page and several, a start inside of a page.
struct Place {
  int64_t begin;
  int64_t position;
};
std::vector<Place> Places() {
  constexpr int64_t kFar = 120007;
  std::vector<Place> places;
  for (int64_t position : {0, kPageTokens - 1, kPageTokens, kPageTokens + 1}) {
    places.push_back({0, position});
  }
  places.push_back({5, 5});
  places.push_back({5, 3 * kPageTokens - 1});
  places.push_back({kFar, kFar});
  places.push_back({kFar, kFar + 2 * kPageTokens});
  return places;
}

std::vector<Case> Shapes() {
  std::vector<Case> shapes;
  for (auto [heads, kv_heads] : {std::pair(1, 1), {4, 4}, {9, 3}, {8, 1}}) {
    for (int64_t head_dim : Some({8, 40, 48, 64, 128})) {
      Case c;
      c.heads = heads;
      c.kv_heads = kv_heads;
      c.head_dim = static_cast<int>(head_dim);
      shapes.push_back(c);
    }
  }
  return shapes;
}

std::vector<DType> KvTypes(int head_dim) {
  std::vector<DType> types;
  for (DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0}) {
    if (IsKvType(type, head_dim)) types.push_back(type);
  }
  return types;
}

// head_dim 8, so that the numbers can be checked by hand. Scores are
// 2 * (1, 2) * 0.5 = 1 and 2: weights e^-1 and 1.
TEST(AttentionTest, HandWorked) {
  for (Device device : {Device::kRef, Device::kCpu}) {
    Case c;
    c.position = 1;
    Problem problem(c);
    std::fill_n(problem.Query(0), 8, 0.0f);
    problem.Query(0)[0] = 2.0f;
    const float k0[8] = {1.0f}, k1[8] = {2.0f};
    const float v0[8] = {10.0f, 1.0f}, v1[8] = {20.0f, -1.0f};
    KvRowFromF32(DType::kF32, k0, 8, problem.K(0, 0));
    KvRowFromF32(DType::kF32, k1, 8, problem.K(1, 0));
    KvRowFromF32(DType::kF32, v0, 8, problem.V(0, 0));
    KvRowFromF32(DType::kF32, v1, 8, problem.V(1, 0));
    AttentionParams p = problem.Params();
    p.scale = 0.5f;
    std::vector<float> out(8, kPoison);
    p.out = out.data();
    ASSERT_TRUE(Attention(*MakeStream(device, 1), p).ok());
    EXPECT_NEAR(out[0], 17.310586, 1e-5);    // (10 / e + 20) / (1 / e + 1)
    EXPECT_NEAR(out[1], -0.46211716, 1e-6);  // (1 / e - 1) / (1 / e + 1)
    for (size_t d = 2; d < 8; ++d) EXPECT_EQ(out[d], 0.0f);
  }
}

TEST(AttentionTest, ReferenceIsSoftmaxAttention) {
  const std::unique_ptr<Stream> ref = MakeStream(Device::kRef, 1);
  for (Case c : Shapes()) {
    for (Place place : Places()) {
      c.begin = place.begin;
      c.position = place.position;
      c.rows = 2;
      Problem problem(c);
      ExpectNearSoftmax(problem, problem.Run(*ref));
    }
  }
}

TEST(AttentionTest, ReferenceReadsEveryKvType) {
  const std::unique_ptr<Stream> ref = MakeStream(Device::kRef, 1);
  for (DType type_k : KvTypes(64)) {
    for (DType type_v : KvTypes(64)) {
      Problem problem({4, 2, 64, type_k, type_v, 3, kPageTokens + 9, 3});
      ExpectNearSoftmax(problem, problem.Run(*ref));
    }
  }
}

class AttentionIsaTest : public testing::TestWithParam<Isa> {
 protected:
  // Levels whose Fma rounds once equal the reference bit for bit.
  void ExpectIsReference(Problem& problem, const std::vector<float>& out) {
    if (GetParam() == Isa::kPortable) {
      ExpectNearSoftmax(problem, out);
    } else {
      EXPECT_TRUE(SameBits(out, problem.Run(*ref_))) << NameOfCase(problem.c());
    }
  }

  std::unique_ptr<Stream> ref_ = MakeStream(Device::kRef, 1);
};

INSTANTIATE_TEST_SUITE_P(Isas, AttentionIsaTest,
                         testing::ValuesIn(SupportedIsas()),
                         [](const auto& level) {
                           return std::string(NameOf(level.param));
                         });

TEST_P(AttentionIsaTest, EqualsReferenceForEveryShapeAndPlace) {
  const std::unique_ptr<Stream> cpu = MakeStream(Device::kCpu, 2, GetParam());
  for (Case c : Shapes()) {
    for (Place place : Places()) {
      for (int64_t rows : Some({1, 2, 7}, {7})) {
        c.begin = place.begin;
        c.position = place.position;
        c.rows = rows;
        Problem problem(c);
        ExpectIsReference(problem, problem.Run(*cpu));
      }
    }
  }
}

TEST_P(AttentionIsaTest, EqualsReferenceForEveryKvType) {
  const std::unique_ptr<Stream> cpu = MakeStream(Device::kCpu, 1, GetParam());
  for (int head_dim : {40, 64, 96}) {
    for (DType type_k : KvTypes(head_dim)) {
      for (DType type_v : KvTypes(head_dim)) {
        Problem problem(
            {6, 2, head_dim, type_k, type_v, 21, kPageTokens + 9, 5});
        ExpectIsReference(problem, problem.Run(*cpu));
      }
    }
  }
}

TEST_P(AttentionIsaTest, EveryNumberOfQueriesInATile) {
  const std::unique_ptr<Stream> cpu = MakeStream(Device::kCpu, 1, GetParam());
  for (int heads = 1; heads <= 17; heads += TriesLess() ? 4 : 1) {
    for (int head_dim : {8, 72, 80, 256}) {
      Problem problem(
          {heads, 1, head_dim, DType::kF16, DType::kF16, 0, 150, 1});
      ExpectIsReference(problem, problem.Run(*cpu));
    }
  }
}

// Invariant 6: the rows of a call, their number and the threads do not show.
TEST_P(AttentionIsaTest, RowsDoNotDependOnOtherRowsOrThreads) {
  std::vector<std::unique_ptr<Stream>> streams;
  for (int threads : {1, 2, 3}) {
    streams.push_back(MakeStream(Device::kCpu, threads, GetParam()));
  }
  for (Case c : {Case{9, 3, 64, DType::kF16, DType::kF16, 5, 300, 64},
                 Case{4, 4, 40, DType::kBF16, DType::kF32, 0, 0, 64},
                 Case{8, 1, 32, DType::kQ8_0, DType::kQ8_0, 130, 250, 200}}) {
    const Problem problem(c);
    const std::vector<float> all = problem.Run(*streams[0]);
    for (const auto& stream : streams) {
      EXPECT_TRUE(SameBits(problem.Run(*stream), all)) << NameOfCase(c);
      const int64_t row_floats = int64_t{c.heads} * c.head_dim;
      for (int64_t step : {1, 7, 33}) {
        for (int64_t row = 0; row < c.rows; row += step) {
          const int64_t rows = std::min(step, c.rows - row);
          const std::vector<float> some = problem.Run(*stream, row, rows);
          EXPECT_EQ(std::memcmp(some.data(), all.data() + row * row_floats,
                                some.size() * sizeof(float)),
                    0)
              << NameOfCase(c) << ": rows from " << row << " by " << step;
        }
      }
    }
  }
}

// Enough rows and pages for several blocks of rows and several waves of pages.
TEST_P(AttentionIsaTest, WavesDoNotShow) {
  const std::unique_ptr<Stream> cpu = MakeStream(Device::kCpu, 2, GetParam());
  const Case c = {64, 1, 128, DType::kF16, DType::kF16, 0, 1300, 40};
  const Problem problem(c);
  const std::vector<float> all = problem.Run(*cpu);
  const int64_t row_floats = int64_t{c.heads} * c.head_dim;
  for (int64_t row : {0, 30, 39}) {
    const std::vector<float> one = problem.Run(*cpu, row, 1);
    EXPECT_EQ(std::memcmp(one.data(), all.data() + row * row_floats,
                          one.size() * sizeof(float)),
              0)
        << row;
  }
}

// A fault in the future of a row, in its own group of 16 positions too, does
// not reach it; from its position on it does.
TEST_P(AttentionIsaTest, FaultsReachOnlyRowsThatSeeThem) {
  const std::unique_ptr<Stream> cpu = MakeStream(Device::kCpu, 2, GetParam());
  const Case c = {4, 2, 40, DType::kF32, DType::kF32, 3, kPageTokens - 9, 20};
  for (float fault : {kPoison, kInf, -kInf}) {
    for (bool in_k : {true, false}) {
      for (int64_t bad : {c.position + 2, c.position + 9, c.position + 15}) {
        Problem problem(c);
        const std::vector<float> clean = problem.Run(*cpu);
        // One element of K: the score is -inf for some queries, and must not
        // pass for a weight of zero.
        std::vector<float> row(40, in_k ? 0.25f : fault);
        row[7] = fault;
        for (int head = 0; head < c.kv_heads; ++head) {
          KvRowFromF32(DType::kF32, row.data(), 40,
                       in_k ? problem.K(bad, head) : problem.V(bad, head));
        }
        const std::vector<float> out = problem.Run(*cpu);
        const auto first = static_cast<size_t>((bad - c.position) * 4 * 40);
        for (size_t i = 0; i < out.size(); ++i) {
          if (i < first) {
            ASSERT_EQ(out[i], clean[i]) << bad << " " << i;
          } else {
            ASSERT_FALSE(std::isfinite(out[i])) << bad << " " << i;
          }
        }
      }
    }
  }
}

TEST_P(AttentionIsaTest, FaultInAQueryStaysInItsHead) {
  const std::unique_ptr<Stream> cpu = MakeStream(Device::kCpu, 2, GetParam());
  for (float fault : {kPoison, kInf, -kInf}) {
    Problem problem({4, 2, 40, DType::kF16, DType::kF16, 0, 200, 3});
    const std::vector<float> clean = problem.Run(*cpu);
    problem.Query(1)[2 * 40 + 17] = fault;
    const std::vector<float> out = problem.Run(*cpu);
    for (size_t i = 0; i < out.size(); ++i) {
      if (i / 40 == 1 * 4 + 2) {
        ASSERT_FALSE(std::isfinite(out[i])) << i;
      } else {
        ASSERT_EQ(out[i], clean[i]) << i;
      }
    }
  }
}

TEST_P(AttentionIsaTest, LargeScoresDoNotOverflow) {
  const std::unique_ptr<Stream> cpu = MakeStream(Device::kCpu, 1, GetParam());
  Problem problem({1, 1, 64, DType::kF32, DType::kF32, 0, 400, 1});
  for (int d = 0; d < 64; ++d) problem.Query(0)[d] *= 1e4f;
  const std::vector<float> out = problem.Run(*cpu);
  EXPECT_TRUE(AllFinite(out));
  ExpectIsReference(problem, out);
}

TEST(AttentionTest, NoRowsWriteNothing) {
  for (Device device : {Device::kRef, Device::kCpu}) {
    Case c;
    c.rows = 0;
    Problem problem(c);
    EXPECT_TRUE(problem.Run(*MakeStream(device, 2)).empty());
  }
}

TEST(AttentionTest, RefusesWhatItCannotRead) {
  const std::unique_ptr<Stream> stream = MakeStream(Device::kCpu, 1);
  Problem problem({4, 2, 40, DType::kF16, DType::kF16, 5, 200, 3});
  std::vector<float> out(3 * 160, kPoison);
  const auto code_of = [&](auto change) {
    AttentionParams p = problem.Params();
    p.out = out.data();
    change(p);
    return CodeOf(Attention(*stream, p));
  };
  EXPECT_EQ(code_of([](auto& p) { p.rows = -1; }), "invalid_shape");
  EXPECT_EQ(code_of([](auto& p) { p.heads = 3; }), "invalid_shape");
  EXPECT_EQ(code_of([](auto& p) { p.heads = 0; }), "invalid_shape");
  EXPECT_EQ(code_of([](auto& p) { p.layout.kv_heads = 0; }), "invalid_shape");
  EXPECT_EQ(code_of([](auto& p) { p.layout.head_dim = 0; }), "invalid_shape");
  EXPECT_EQ(code_of([](auto& p) { p.layout.head_dim = 36; }), "invalid_shape");
  EXPECT_EQ(code_of([](auto& p) { p.q_stride = 159; }), "invalid_shape");
  EXPECT_EQ(code_of([](auto& p) { p.layout.type_k = DType::kQ8_0; }),
            "invalid_kv_type");
  EXPECT_EQ(code_of([](auto& p) { p.layout.type_v = DType::kQ4_0; }),
            "invalid_kv_type");
  EXPECT_EQ(code_of([](auto& p) { p.begin = -1; }), "invalid_position");
  EXPECT_EQ(code_of([](auto& p) { p.begin = 201; }), "invalid_position");
  EXPECT_EQ(code_of([](auto& p) { p.first_page = 1; }), "invalid_position");
  EXPECT_EQ(code_of([](auto& p) { p.num_pages = 1; }), "invalid_position");
  std::vector<const std::byte*> pages = {problem.K(5, 0), nullptr};
  EXPECT_EQ(code_of([&](auto& p) { p.pages = pages.data(); }),
            "invalid_position");
  for (float x : out) EXPECT_TRUE(std::isnan(x));
}

}  // namespace
}  // namespace tiercel
