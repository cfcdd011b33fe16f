#include "kernels/select/key_scores.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/attention/testing.h"
#include "kernels/kv/testing.h"
#include "kernels/number/reference_math.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"

namespace tiercel::key_scores_test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// The keys of a problem of attention. Those outside of positions first..last -
// 1 are NaN, and pages without any of these positions are null.
class Keys {
 public:
  Keys(const Case& c, int64_t first, int64_t last)
      : problem_(c), first_(first), last_(last) {
    const AttentionParams p = problem_.Params();
    for (int64_t j = c.begin; j < c.position + c.rows; ++j) {
      for (int head = 0; head < c.kv_heads; ++head) {
        if (j >= first && j < last) continue;
        std::memset(problem_.K(j, head), 0xff,
                    static_cast<size_t>(p.layout.KRowBytes()));
      }
    }
    for (int64_t i = 0; i < p.num_pages; ++i) {
      const int64_t start = (p.first_page + i) * kPageTokens;
      pages_.push_back(start < last && first < start + kPageTokens ? p.pages[i]
                                                                   : nullptr);
    }
  }

  KeyScoresParams Params() const {
    const AttentionParams p = problem_.Params();
    return {p.q,         p.q_stride,        p.rows,        p.heads,
            p.scale,     p.layout,          pages_.data(), p.first_page,
            p.num_pages, p.position,        first_,        last_,
            nullptr,     last_ - first_ + 3};
  }

  // Returns [rows, heads, last - first]. Elements between two heads must not
  // change.
  std::vector<float> Run(Stream& stream, KeyScoresParams p) const {
    OnDevicePages pages(stream, pages_, p.layout.PageBytes());
    OnDevice<float> q(stream, problem_.q());
    OnDevice<float> given(
        stream,
        std::vector<float>(static_cast<size_t>(p.rows * p.heads * p.out_stride),
                           kPoison));
    p.pages = pages.data();
    p.q = q.data();
    p.out = given.data();
    const absl::Status status = KeyScores(stream, p);
    pages.Forget();
    EXPECT_TRUE(status.ok()) << status;
    const std::vector<float> out = given.Read();
    std::vector<float> scores;
    for (auto head = out.begin(); head != out.end(); head += p.out_stride) {
      const auto end = head + (last_ - first_);
      scores.insert(scores.end(), head, end);
      EXPECT_TRUE(std::all_of(end, head + p.out_stride,
                              [](float x) { return std::isnan(x); }));
    }
    return scores;
  }
  std::vector<float> Run(Stream& stream) const { return Run(stream, Params()); }

  // Compares with the formula in double: a sum of n products is off by at most
  // n roundings of the sum of magnitudes, and the scale is one more.
  void ExpectScores(const std::vector<float>& out) {
    const Case& c = problem_.c();
    const float scale = problem_.Params().scale;
    std::vector<float> key(static_cast<size_t>(c.head_dim));
    for (int64_t r = 0; r < c.rows; ++r) {
      for (int h = 0; h < c.heads; ++h) {
        const float* q = problem_.Query(r) + int64_t{h} * c.head_dim;
        for (int64_t j = first_; j < last_; ++j) {
          const float score = out[static_cast<size_t>(
              (r * c.heads + h) * (last_ - first_) + j - first_)];
          if (j > c.position + r) {
            ASSERT_EQ(score, -kInf) << NameOfCase(c) << ": row " << r
                                    << " head " << h << " position " << j;
            continue;
          }
          KvRowToF32(c.type_k, problem_.K(j, h / (c.heads / c.kv_heads)),
                     c.head_dim, key.data());
          double dot = 0;
          double magnitude = 0;
          for (size_t d = 0; d < key.size(); ++d) {
            dot += static_cast<double>(q[d]) * key[d];
            magnitude += std::fabs(static_cast<double>(q[d]) * key[d]);
          }
          ASSERT_NEAR(score, dot * scale,
                      (c.head_dim + 1) * 0x1p-24 * magnitude * scale)
              << NameOfCase(c) << ": row " << r << " head " << h << " position "
              << j;
        }
      }
    }
  }

  Problem& problem() { return problem_; }

 private:
  Problem problem_;
  int64_t first_;
  int64_t last_;
  std::vector<DevicePtr<std::byte>> pages_;
};

TEST(KeyScoresTest, HandWorked) {
  for (DeviceKind device : {DeviceKind::kRef, DeviceKind::kCpu}) {
    Case c{.heads = 2, .kv_heads = 1, .head_dim = 8, .position = 1, .rows = 2};
    Keys keys(c, 0, 3);
    for (int64_t j = 0; j < 3; ++j) {
      std::vector<float> key(8, 0.0f);
      key[0] = static_cast<float>(j + 1);
      key[7] = 10.0f;
      KvRowFromF32(DType::kF32, key.data(), 8, keys.problem().K(j, 0));
    }
    for (int64_t r = 0; r < 2; ++r) std::fill_n(keys.problem().Query(r), 16, 0);
    keys.problem().Query(0)[0] = 1.0f;
    keys.problem().Query(0)[8 + 7] = 1.0f;
    keys.problem().Query(1)[0] = 2.0f;
    KeyScoresParams p = keys.Params();
    p.scale = 0.5f;
    EXPECT_EQ(keys.Run(*MakeStream(device), p),
              (std::vector<float>{0.5f, 1.0f, -kInf, 5.0f, 5.0f, -kInf,  //
                                  1.0f, 2.0f, 3.0f, 0.0f, 0.0f, 0.0f}));
  }
}

class KeyScoresBackendTest : public ThreeStreamsTest {
 protected:
  // Compares both streams with the formula and, if Fma rounds once, with each
  // other bit for bit.
  void Check(const Case& c, int64_t first, int64_t last) {
    Keys keys(c, first, last);
    const std::vector<float> out = keys.Run(*one_);
    const std::vector<float> expected = keys.Run(*ref_);
    keys.ExpectScores(expected);
    keys.ExpectScores(out);
    EXPECT_TRUE(SameBits(out, keys.Run(*three_))) << NameOfCase(c);
    if (!HasFma()) return;
    EXPECT_TRUE(SameBits(out, expected)) << NameOfCase(c);
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, KeyScoresBackendTest,
                         testing::ValuesIn(AttentionBackends()), NameOfBackend);

TEST_P(KeyScoresBackendTest, EveryKvTypeAndShape) {
  for (int64_t head_dim : Fewer({8, 24, 40, 64, 96, 128}, {8, 40, 96})) {
    for (DType type : KvTypes(static_cast<int>(head_dim))) {
      for (auto [heads, kv_heads] :
           {std::pair(1, 1), {4, 4}, {9, 3}, {14, 2}}) {
        Case c{.heads = heads,
               .kv_heads = kv_heads,
               .head_dim = static_cast<int>(head_dim),
               .type_k = type,
               .position = 140,
               .rows = 2};
        Check(c, 3, 139);
      }
    }
  }
}

TEST_P(KeyScoresBackendTest, EveryRangeInAndAcrossPages) {
  for (int64_t first : {0, 1, 15, 16, 127, 128, 200, 259}) {
    for (int64_t size :
         Fewer({0, 1, 2, 15, 16, 17, 33, 128, 129, 256}, {0, 1, 33, 256})) {
      Case c{.heads = 2,
             .kv_heads = 2,
             .head_dim = 16,
             .type_k = DType::kF16,
             .position = first + size + 130};
      Check(c, first, first + size);
    }
  }
}

// There are rows that see all, some and none of a page's cells, and of a
// group's.
TEST_P(KeyScoresBackendTest, EveryRowSeesUpToItself) {
  for (int64_t position : {0, 100, 127, 128, 250}) {
    for (int64_t rows : Fewer({1, 2, 16, 17, 150}, {1, 17})) {
      for (int64_t first : {int64_t{0}, position, position + rows - 1}) {
        Case c{.heads = 3,
               .kv_heads = 1,
               .head_dim = 8,
               .type_k = DType::kBF16,
               .position = position,
               .rows = rows};
        Check(c, first, position + rows);
        if (first < position + rows - 1) Check(c, first, position + rows - 1);
      }
    }
  }
}

TEST_P(KeyScoresBackendTest, FarPositions) {
  Case c{.heads = 2,
         .kv_heads = 1,
         .head_dim = 32,
         .type_k = DType::kQ8_0,
         .begin = 1000000,
         .position = 1000200};
  Check(c, 1000003, 1000150);
}

// With one-hot values attention's output is its weights, e^(score - max) / sum.
// They must have the same bits as those computed from these scores.
TEST_P(KeyScoresBackendTest, AreTheScoresOfAttention) {
  for (DType type : KvTypes(128)) {
    for (int64_t positions : {2, 16, 77, 128}) {
      // One row and five take attention's two ways on a CPU.
      for (int64_t rows : {1, 5}) {
        Case c{.heads = 4,
               .kv_heads = 2,
               .head_dim = 128,
               .type_k = type,
               .position = positions - 1};
        c.position = positions - rows;
        c.rows = rows;
        if (c.position < 0) continue;
        Keys keys(c, 0, positions);
        for (int64_t j = 0; j < positions; ++j) {
          for (int head = 0; head < 2; ++head) {
            std::vector<float> one_hot(128, 0.0f);
            one_hot[static_cast<size_t>(j)] = 1.0f;
            KvRowFromF32(DType::kF32, one_hot.data(), 128,
                         keys.problem().V(j, head));
          }
        }
        const std::vector<float> scores = keys.Run(*one_);
        const std::vector<float> out = keys.problem().Run(*one_);
        if (!HasFma()) continue;
        for (int64_t i = 0; i < rows * 4; ++i) {
          const float* score = scores.data() + i * positions;
          const float max = *std::max_element(score, score + positions);
          float lane[16] = {};
          for (int64_t j = 0; j < positions; ++j) {
            if (score[j] > -kInf) lane[j % 16] += ExpLane(score[j] - max);
          }
          const float sum = SumLanes(lane);
          for (int64_t j = 0; j < positions; ++j) {
            ASSERT_EQ(out[static_cast<size_t>(i * 128 + j)],
                      score[j] > -kInf ? ExpLane(score[j] - max) / sum : 0.0f)
                << NameOfCase(c) << ": " << i << " position " << j;
          }
        }
      }
    }
  }
}

TEST_P(KeyScoresBackendTest, AFaultShowsInItsScores) {
  for (Stream* stream : {ref_.get(), one_.get()}) {
    for (float fault : {kPoison, kInf}) {
      Case c{.heads = 2, .kv_heads = 1, .head_dim = 24, .position = 40};
      Keys keys(c, 1, 40);
      std::vector<float> key(24, 0.0f);
      key[20] = fault;
      KvRowFromF32(DType::kF32, key.data(), 24, keys.problem().K(17, 0));
      const std::vector<float> out = keys.Run(*stream);
      for (size_t i = 0; i < out.size(); ++i) {
        EXPECT_EQ(std::isfinite(out[i]), i % 39 != 16) << i;
      }
    }
  }
}

TEST(KeyScoresTest, RefusesWhatItCannotRead) {
  const std::unique_ptr<Stream> stream = MakeStream(DeviceKind::kCpu);
  Case c{.heads = 4,
         .kv_heads = 2,
         .head_dim = 16,
         .type_k = DType::kF16,
         .position = 400,
         .rows = 2};
  const Keys keys(c, 130, 300);  // pages 1 and 2 of 0 to 3
  std::vector<float> out(static_cast<size_t>(8 * 170), kPoison);
  const auto code_of = [&](auto change) {
    KeyScoresParams p = keys.Params();
    p.out = InPlace(out.data());
    p.out_stride = 400;
    change(p);
    return CodeOf(KeyScores(*stream, p));
  };
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(code_of([](auto& p) { p.rows = -1; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.heads = 0; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.heads = 5; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.layout.kv_heads = 0; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.layout.head_dim = 0; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.layout.head_dim = 12; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.q_stride = 63; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.out_stride = 169; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.layout.type_k = DType::kQ8_0; }),
            "invalid_kv_type");
  EXPECT_EQ(code_of([](auto& p) { p.layout.type_k = DType::kQ6_K; }),
            "invalid_kv_type");
  EXPECT_EQ(code_of([](auto& p) { p.first = -1; }), "invalid_position");
  EXPECT_EQ(code_of([](auto& p) { p.first = 301; }), "invalid_position");
  EXPECT_EQ(code_of([](auto& p) { p.position = -1; }), "invalid_position");
  EXPECT_EQ(code_of([](auto& p) { p.position = kMost; }), "invalid_position");
  EXPECT_EQ(code_of([](auto& p) { p.rows = kMost; }), "invalid_position");
  EXPECT_EQ(code_of([](auto& p) { p.position = 297; }), "invalid_position");
  EXPECT_EQ(code_of([](auto& p) { p.first_page = 2; }), "invalid_position");
  EXPECT_EQ(code_of([](auto& p) { p.num_pages = 2; }), "invalid_position");
  // Pages 0 and 3 are null.
  EXPECT_EQ(code_of([](auto& p) { p.first = 127; }), "invalid_position");
  EXPECT_EQ(code_of([](auto& p) { p.last = 385; }), "invalid_position");
  const auto params = keys.Params();
  std::vector<DevicePtr<std::byte>> pages(params.pages,
                                          params.pages + params.num_pages);
  pages[2] += 2;
  EXPECT_EQ(code_of([&](auto& p) { p.pages = pages.data(); }), "invalid_page");
  for (float x : out) EXPECT_TRUE(std::isnan(x));

  KeyScoresParams none = keys.Params();
  none.rows = 0;
  EXPECT_TRUE(KeyScores(*stream, none).ok());
  none = keys.Params();
  none.first = none.last;
  EXPECT_TRUE(KeyScores(*stream, none).ok());
}

}  // namespace
}  // namespace tiercel::key_scores_test
