#include "kernels/kv/kv_write.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/kv/kv_row.h"
#include "kernels/kv/testing.h"
#include "kernels/number/half.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"
#include "tests/setup/draws.h"

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
    NormalFloats normal(0.0f, 4.0f);
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
  // Returns the pages, one after the other.
  std::vector<std::byte> Run(Stream& stream) {
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
    return bytes.Read();
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
  std::vector<std::unique_ptr<Stream>> streams;
  for (const int threads : Threads({1, 3})) {
    streams.push_back(NewStream(threads));
  }
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
            const std::vector<std::byte> expected = problem.Run(*ref_);
            for (const auto& fast : streams) {
              EXPECT_TRUE(SameBytes(problem.Run(*fast), expected))
                  << head_dim << " " << position << " " << rows;
            }
          }
        }
      }
    }
  }
}

// The floats of rows of heads, with a gap after each row.
struct Heads {
  Heads(int64_t num_rows, int num_heads, int dim, int64_t gap, unsigned seed)
      : rows(num_rows),
        heads(num_heads),
        head_dim(dim),
        stride(int64_t{heads} * dim + gap) {
    std::mt19937 random(seed);
    NormalFloats normal;
    for (int64_t i = 0; i < rows * stride; ++i) x.push_back(normal(random));
  }

  // Returns these rows with the pairs of each head turned by angles [rows,
  // half].
  Heads RotatedBy(const std::vector<float>& cos, const std::vector<float>& sin,
                  int half) const {
    Heads to = *this;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t e = 0; e < int64_t{heads} * head_dim; ++e) {
        const int64_t i = e % head_dim;
        if (i >= 2 * half) continue;
        const auto at = static_cast<size_t>(r * stride + e);
        const auto angle = static_cast<size_t>(r * half + i % half);
        const auto pairs = static_cast<size_t>(half);
        to.x[at] = i < half ? x[at] * cos[angle] - x[at + pairs] * sin[angle]
                            : x[at] * cos[angle] + x[at - pairs] * sin[angle];
      }
    }
    return to;
  }
  // Returns these rows with every head times `scale`.
  Heads Times(float scale) const {
    Heads to = *this;
    for (int64_t i = 0; i < rows * stride; ++i) {
      if (i % stride < int64_t{heads} * head_dim) {
        to.x[static_cast<size_t>(i)] *= scale;
      }
    }
    return to;
  }

  int64_t rows;
  int heads;
  int head_dim;
  int64_t stride;
  std::vector<float> x;
};

// Keys are rotated on their way to the pages, queries rotated and scaled in
// place, and nothing else changes: the pages are those of keys that were
// rotated before.
TEST_P(KvWriteTest, RotatesKeysAndQueries) {
  const struct {
    int head_dim, half, heads, kv_heads;
    int64_t position, rows;
    float q_scale = 1;
  } cases[] = {{8, 1, 3, 2, 5, 1},
               {8, 4, 0, 1, 0, 2},
               {40, 20, 6, 3, kPageTokens - 2, 67},
               {40, 17, 2, 2, kPageTokens, 1},
               {64, 32, 4, 1, 3 * kPageTokens - 3, 5},
               {96, 40, 3, 3, 70, 0},
               {96, 48, 1, 2, 120007, 2},
               {40, 20, 6, 3, kPageTokens - 2, 67, 1.7f},
               {96, 36, 3, 1, 5, 3, 0.3f},
               {72, 0, 2, 1, 5, 3, 1.7f}};
  unsigned seed = 0;
  for (const auto& c : cases) {
    for (const DType type : KvTypes(c.head_dim)) {
      const Heads q(c.rows, c.heads, c.head_dim, 5, ++seed);
      const Heads k(c.rows, c.kv_heads, c.head_dim, 3, ++seed);
      const Heads v(c.rows, c.kv_heads, c.head_dim, 2, ++seed);
      const Heads angles(c.rows, 2, c.half, 0, ++seed);
      const std::vector<float> cos(angles.x.begin(),
                                   angles.x.begin() + c.rows * c.half);
      const std::vector<float> sin(angles.x.begin() + c.rows * c.half,
                                   angles.x.end());
      const KvLayout layout = {type, DType::kF16, c.kv_heads, c.head_dim};
      const int64_t first_page = c.position / kPageTokens;
      const int64_t pages =
          (c.position + c.rows) / kPageTokens - first_page + 1;
      const auto bytes = static_cast<size_t>(pages * layout.PageBytes());
      const auto write = [&](Stream& stream, const Heads& keys, bool rotates) {
        OnDevice<std::byte> to(stream,
                               std::vector<std::byte>(bytes, kUntouched));
        OnDevice<float> on_k(stream, keys.x);
        OnDevice<float> on_v(stream, v.x);
        OnDevice<float> on_q(stream, q.x);
        OnDevice<float> on_cos(stream, cos);
        OnDevice<float> on_sin(stream, sin);
        std::vector<DevicePtr<std::byte>> list;
        for (int64_t i = 0; i < pages; ++i) {
          list.push_back(to.data() + i * layout.PageBytes());
        }
        KvWriteParams p = {on_k.data(), on_v.data(), keys.stride, v.stride,
                           c.rows,      layout,      list.data(), first_page,
                           pages,       c.position};
        if (rotates) {
          p.rotation = {c.half,   on_cos.data(), on_sin.data(), on_q.data(),
                        q.stride, c.heads,       c.q_scale};
        }
        const absl::Status status = KvWrite(stream, p);
        EXPECT_TRUE(status.ok()) << status;
        EXPECT_EQ(on_k.Read(), keys.x);
        EXPECT_EQ(
            on_q.Read(),
            rotates ? q.RotatedBy(cos, sin, c.half).Times(c.q_scale).x : q.x);
        return to.Read();
      };
      for (const int threads : Threads({1, 3})) {
        EXPECT_TRUE(write(*NewStream(threads), k, true) ==
                    write(*ref_, k.RotatedBy(cos, sin, c.half), false))
            << InfoOf(type).name << " " << c.head_dim << " " << c.half;
      }
    }
  }
}

// One head of 8: pairs (0, 2) and (1, 3), the last four elements stay.
TEST_P(KvWriteTest, RotationHandWorked) {
  const std::unique_ptr<Stream> stream = NewStream();
  const KvLayout layout = {DType::kF32, DType::kF32, 1, 8};
  OnDevice<std::byte> page(
      *stream, std::vector<std::byte>(static_cast<size_t>(layout.PageBytes())));
  OnDevice<float> k(*stream, {1, 2, 3, 4, 5, 6, 7, 8});
  OnDevice<float> q(*stream, {2, 4, 6, 8, 1, 1, 1, 1});
  OnDevice<float> cos(*stream, {0.5f, 0.0f});
  OnDevice<float> sin(*stream, {2.0f, 1.0f});
  const DevicePtr<std::byte> pages[] = {page.data()};
  ASSERT_TRUE(KvWrite(*stream,
                      {.k = k.data(),
                       .v = k.data(),
                       .k_stride = 8,
                       .v_stride = 8,
                       .rows = 1,
                       .layout = layout,
                       .pages = pages,
                       .first_page = 0,
                       .num_pages = 1,
                       .position = 0,
                       .rotation = {2, cos.data(), sin.data(), q.data(), 8, 1}})
                  .ok());
  const std::vector<std::byte> bytes = page.Read();
  float written[2][8];
  std::memcpy(written[0], &bytes[static_cast<size_t>(layout.KOffset(0, 0))],
              sizeof(written[0]));
  std::memcpy(written[1], &bytes[static_cast<size_t>(layout.VOffset(0, 0))],
              sizeof(written[1]));
  EXPECT_THAT(written[0], testing::ElementsAre(-5.5f, -4, 3.5f, 2, 5, 6, 7, 8));
  EXPECT_THAT(written[1], testing::ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_EQ(q.Read(), (std::vector<float>{-11, -8, 7, 4, 1, 1, 1, 1}));
}

// The reference's values are at the offsets of the layout, and near the given
// values.
TEST(KvWriteReferenceTest, ReadsBack) {
  const std::unique_ptr<Stream> ref = MakeStream(DeviceKind::kRef);
  for (DType type : KvTypes(32)) {
    const KvLayout layout = {type, type, 2, 32};
    Problem problem({layout, kPageTokens - 2, 5});
    const std::vector<std::byte> pages = problem.Run(*ref);
    const KvWriteParams p = problem.Params();
    for (int64_t r = 0; r < 5; ++r) {
      const std::byte* const page =
          pages.data() + (r < 2 ? 0 : layout.PageBytes());
      const int cell = static_cast<int>((kPageTokens - 2 + r) % kPageTokens);
      for (int head = 0; head < 2; ++head) {
        float k[32], v[32];
        KvRowToF32(type, page + layout.KOffset(head, cell), 32, k);
        KvRowToF32(type, page + layout.VOffset(head, cell), 32, v);
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
      const std::vector<std::byte> page = problem.Run(*fast);
      const std::vector<std::byte> expected = problem.Run(*ref_);
      float row[32];
      KvRowToF32(type, page.data(), 32, row);
      if (!std::isfinite(value)) {
        EXPECT_FALSE(std::isfinite(row[7])) << value;
        continue;
      }
      EXPECT_EQ(page, expected) << value;
      if (type == DType::kQ8_0) {
        for (int i = 2; i < 34; ++i) {
          EXPECT_GE(static_cast<int8_t>(page[static_cast<size_t>(i)]), 0);
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
  EXPECT_EQ(code_of([](auto& p) { p.rows = -1; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.layout.kv_heads = 0; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.layout.head_dim = 0; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.k_stride = 79; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.v_stride = 79; }), "invalid_sizes");
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

  float x[80] = {};
  const Rotation good = {20, InPlace(x), InPlace(x), InPlace(x), 80, 2};
  const auto code_with = [&](auto change) {
    return code_of([&](auto& p) {
      p.rotation = good;
      change(p.rotation);
    });
  };
  EXPECT_EQ(code_with([](auto& r) { r.half = -1; }), "invalid_sizes");
  EXPECT_EQ(code_with([](auto& r) { r.half = 21; }), "invalid_sizes");
  EXPECT_EQ(code_with([](auto& r) { r.heads = -1; }), "invalid_sizes");
  EXPECT_EQ(code_with([](auto& r) { r.q_stride = 79; }), "invalid_sizes");
  EXPECT_EQ(code_with([](auto& r) { r.cos = nullptr; }), "invalid_argument");
  EXPECT_EQ(code_with([](auto& r) { r.sin = nullptr; }), "invalid_argument");
  EXPECT_EQ(code_with([](auto& r) { r.q = nullptr; }), "invalid_argument");
}

}  // namespace
}  // namespace tiercel::kv_write_test
