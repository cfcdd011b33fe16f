#include "kernels/kv/kv_write.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/kv/kv_row.h"
#include "kernels/kv/testing.h"
#include "kernels/number/half.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"

namespace tiercel::kv_write_test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr std::byte kUntouched{0xa5};

struct Case {
  KvLayout layout;
  int64_t position;
  int64_t rows;
};

// The rows of a case, with strides longer than rows, and new pages.
class Problem {
 public:
  explicit Problem(const Case& c) : case_(c) {
    const int64_t row = int64_t{c.layout.kv_heads} * c.layout.head_dim;
    std::mt19937 random(3);
    std::normal_distribution<float> normal(0.0f, 4.0f);
    k_.resize(static_cast<size_t>(c.rows * (row + 1)));
    v_.resize(static_cast<size_t>(c.rows * (row + 3)));
    for (float& x : k_) x = normal(random);
    for (float& x : v_) x = normal(random);
    first_page_ = c.position / kPageTokens;
    const int64_t end = (c.position + c.rows) / kPageTokens + 1;
    for (int64_t page = first_page_; page < end; ++page) {
      bytes_.emplace_back(static_cast<size_t>(c.layout.PageBytes()),
                          kUntouched);
    }
    for (auto& page : bytes_) pages_.push_back(InPlace(page.data()));
  }

  KvWriteParams Params() {
    const int64_t row = int64_t{case_.layout.kv_heads} * case_.layout.head_dim;
    return {InPlace(k_.data()),
            InPlace(v_.data()),
            row + 1,
            row + 3,
            case_.rows,
            case_.layout,
            pages_.data(),
            first_page_,
            static_cast<int64_t>(pages_.size()),
            case_.position};
  }
  std::vector<std::vector<std::byte>> Run(Stream& stream) {
    OnDevice<float> k(stream, k_);
    OnDevice<float> v(stream, v_);
    const auto page_bytes = static_cast<size_t>(case_.layout.PageBytes());
    OnDevice<std::byte> bytes(
        stream, std::vector<std::byte>(page_bytes * pages_.size(), kUntouched));
    std::vector<DevicePtr<std::byte>> pages;
    for (size_t i = 0; i < pages_.size(); ++i) {
      pages.push_back(bytes.data() + static_cast<int64_t>(i * page_bytes));
    }
    KvWriteParams p = Params();
    p.k = k.data();
    p.v = v.data();
    p.pages = pages.data();
    const absl::Status status = KvWrite(stream, p);
    EXPECT_TRUE(status.ok()) << status;
    const std::vector<std::byte> all = bytes.Read();
    std::vector<std::vector<std::byte>> result;
    for (auto from = all.begin(); from != all.end();
         from += static_cast<std::ptrdiff_t>(page_bytes)) {
      result.emplace_back(from, from + static_cast<std::ptrdiff_t>(page_bytes));
    }
    return result;
  }
  std::vector<float>& k() { return k_; }

 private:
  Case case_;
  int64_t first_page_ = 0;
  std::vector<float> k_, v_;
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<DevicePtr<std::byte>> pages_;
};

class KvWriteTest : public BackendTest {
 protected:
  const std::unique_ptr<Stream> ref_ = MakeStream(DeviceKind::kRef);
};
INSTANTIATE_TEST_SUITE_P(Backends, KvWriteTest,
                         testing::ValuesIn(FastBackends()), NameOfBackend);

TEST_P(KvWriteTest, EqualsReferenceAndTouchesNothingElse) {
  for (const int threads : Threads({1, 3})) {
    const std::unique_ptr<Stream> fast = NewStream(threads);
    for (int head_dim : {8, 40, 64, 96}) {
      for (DType type_k : KvTypes(head_dim)) {
        for (DType type_v : KvTypes(head_dim)) {
          // K and V are written independently.
          if (TriesFew() && type_k != type_v && type_v != DType::kF16) continue;
          for (int64_t position :
               InShort({0, kPageTokens - 1, kPageTokens, 120007},
                       {kPageTokens - 1, 120007})) {
            for (int64_t rows : InShort({0, 1, 2, 131}, {0, 2, 131})) {
              Problem problem({{type_k, type_v, 3, head_dim}, position, rows});
              EXPECT_TRUE(problem.Run(*fast) == problem.Run(*ref_))
                  << head_dim << " " << position << " " << rows;
            }
          }
        }
      }
    }
  }
}

// The reference's values are at the offsets of the layout, and near the given
// values.
TEST(KvWriteReferenceTest, ReadsBack) {
  const std::unique_ptr<Stream> ref = MakeStream(DeviceKind::kRef);
  for (DType type : KvTypes(32)) {
    const KvLayout layout = {type, type, 2, 32};
    Problem problem({layout, kPageTokens - 2, 5});
    const auto pages = problem.Run(*ref);
    const KvWriteParams p = problem.Params();
    for (int64_t r = 0; r < 5; ++r) {
      const auto page = static_cast<size_t>(r < 2 ? 0 : 1);
      const int cell = static_cast<int>((kPageTokens - 2 + r) % kPageTokens);
      for (int head = 0; head < 2; ++head) {
        float k[32], v[32];
        KvRowToF32(type, pages[page].data() + layout.KOffset(head, cell), 32,
                   k);
        KvRowToF32(type, pages[page].data() + layout.VOffset(head, cell), 32,
                   v);
        for (int i = 0; i < 32; ++i) {
          const float* given_k = HostAddress(p.k) + r * p.k_stride + head * 32;
          const float* given_v = HostAddress(p.v) + r * p.v_stride + head * 32;
          float max = 0.0f;
          for (int j = 0; j < 32; ++j) {
            max = std::max({max, std::fabs(given_k[j]), std::fabs(given_v[j])});
          }
          // The error is half a unit, and for q8_0 also that of 127 times d;
          // for q4_0 a whole unit where a number opposite to the outermost is
          // as far out, and that of 8 times d.
          const float unit = type == DType::kF32    ? 0.0f
                             : type == DType::kF16  ? max * 0x1p-11f
                             : type == DType::kBF16 ? max * 0x1p-8f
                             : type == DType::kQ8_0
                                 ? max * (0.5f / 127 + 0x1p-11f)
                                 : max * (1.0f / 8 + 0x1p-11f);
          EXPECT_NEAR(k[i], given_k[i], unit);
          EXPECT_NEAR(v[i], given_v[i], unit);
        }
      }
    }
  }
}

TEST(KvRowTest, Q4HandWorked) {
  // The outermost is negative, so d = 2 and codes reach 14 at most.
  float x[32] = {-16.0f, 15.9f, 3.0f, 5.0f, 1.0f, -1.0f, 0.9f, 0.0f};
  x[16] = 14.0f;
  x[31] = -7.0f;
  std::byte row[18];
  KvRowFromF32(DType::kQ4_0, x, 32, row);
  uint16_t d;
  std::memcpy(&d, row, 2);
  EXPECT_EQ(d, F16FromF32(2.0f));
  // 15.9 is beyond the greatest code; 1.5, 2.5, 0.5, -0.5 and -3.5 are rounded
  // to the even neighbour.
  const int low[8] = {0, 15, 10, 10, 8, 8, 8, 8};
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(static_cast<int>(row[2 + i]) & 15, low[i]) << i;
  }
  EXPECT_EQ(static_cast<int>(row[2]) >> 4, 15);
  EXPECT_EQ(static_cast<int>(row[17]) >> 4, 4);
  float back[32];
  KvRowToF32(DType::kQ4_0, row, 32, back);
  EXPECT_EQ(back[0], -16.0f);
  EXPECT_EQ(back[1], 14.0f);
  EXPECT_EQ(back[16], 14.0f);
  EXPECT_EQ(back[31], -8.0f);

  // The positive one of two that are as far out has a code of its own.
  float both[32] = {-8.0f, 8.0f};
  KvRowFromF32(DType::kQ4_0, both, 32, row);
  KvRowToF32(DType::kQ4_0, row, 32, back);
  EXPECT_EQ(back[0], -7.0f);
  EXPECT_EQ(back[1], 8.0f);
}

TEST(KvRowTest, Q8HandWorked) {
  float x[32] = {254.0f, -254.0f, 3.0f, 5.0f, 1.0f, -1.0f, 0.9f};
  std::byte row[34];
  KvRowFromF32(DType::kQ8_0, x, 32, row);  // d = 2
  uint16_t d;
  std::memcpy(&d, row, 2);
  EXPECT_EQ(d, F16FromF32(2.0f));
  // 1.5, 2.5, 0.5 and -0.5 are rounded to the even neighbour.
  const int expected[8] = {127, -127, 2, 2, 0, 0, 0, 0};
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(static_cast<int8_t>(row[2 + i]), expected[i]) << i;
  }
}

// A fault must be visible to a reader of the row, and tiny blocks must not wrap
// an int8.
TEST_P(KvWriteTest, FaultsAndTinyBlocks) {
  const std::unique_ptr<Stream> fast = NewStream();
  for (DType type : KvTypes(32)) {
    for (float value :
         {kPoison, std::bit_cast<float>(0x7fffffffu), kInf, -kInf, 0.0f, -0.0f,
          1e-45f, 2e-43f, 1e-39f, 7e-8f, 65519.0f, 65520.0f, 1e38f}) {
      const KvLayout layout = {type, type, 1, 32};
      Problem problem({layout, 0, 1});
      std::fill(problem.k().begin(), problem.k().end(),
                std::isfinite(value) ? value * 0.25f : 1.0f);
      problem.k()[7] = value;
      // Two are as far out, the negative one first.
      if (type == DType::kQ4_0) problem.k()[5] = -value;
      const auto pages = problem.Run(*fast);
      const auto expected = problem.Run(*ref_);
      float row[32];
      KvRowToF32(type, pages[0].data(), 32, row);
      if (!std::isfinite(value)) {
        EXPECT_FALSE(std::isfinite(row[7])) << value;
        continue;
      }
      EXPECT_EQ(pages, expected) << value;
      if (type == DType::kQ8_0) {
        for (int i = 2; i < 34; ++i) {
          EXPECT_GE(static_cast<int8_t>(pages[0][static_cast<size_t>(i)]), 0);
        }
      }
    }
  }
}

TEST(KvWriteReferenceTest, RefusesWhatItCannotWrite) {
  const std::unique_ptr<Stream> stream = MakeStream(DeviceKind::kCpu);
  Problem problem({{DType::kF16, DType::kF16, 2, 40}, 126, 4});
  const auto code_of = [&](auto change) {
    KvWriteParams p = problem.Params();
    change(p);
    return CodeOf(KvWrite(*stream, p));
  };
  EXPECT_EQ(code_of([](auto& p) { p.rows = -1; }), "invalid_shape");
  EXPECT_EQ(code_of([](auto& p) { p.layout.kv_heads = 0; }), "invalid_shape");
  EXPECT_EQ(code_of([](auto& p) { p.layout.head_dim = 0; }), "invalid_shape");
  EXPECT_EQ(code_of([](auto& p) { p.k_stride = 79; }), "invalid_shape");
  EXPECT_EQ(code_of([](auto& p) { p.v_stride = 79; }), "invalid_shape");
  EXPECT_EQ(code_of([](auto& p) { p.layout.type_k = DType::kQ8_0; }),
            "invalid_kv_type");
  EXPECT_EQ(code_of([](auto& p) { p.layout.type_v = DType::kQ6_K; }),
            "invalid_kv_type");
  EXPECT_EQ(code_of([](auto& p) { p.position = -1; }), "invalid_position");
  EXPECT_EQ(code_of([](auto& p) { p.first_page = 1; }), "invalid_position");
  EXPECT_EQ(code_of([](auto& p) { p.num_pages = 1; }), "invalid_position");
  std::vector<DevicePtr<std::byte>> pages = {problem.Params().pages[0],
                                             nullptr};
  EXPECT_EQ(code_of([&](auto& p) { p.pages = pages.data(); }),
            "invalid_position");
  pages[1] = problem.Params().pages[1] + 8;
  EXPECT_EQ(code_of([&](auto& p) { p.pages = pages.data(); }), "invalid_page");
}

}  // namespace
}  // namespace tiercel::kv_write_test
