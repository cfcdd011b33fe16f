#include "kernels/kv/key_norms.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/kv/kv_row.h"
#include "kernels/kv/testing.h"
#include "kernels/number/half.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"
#include "tests/setup/draws.h"

namespace tiercel::key_norms_test {
namespace {

constexpr uint16_t kPoisonF16 = 0x7e00;  // NaN

// Pages of keys. All bytes, also those of V, are 0xff, which is NaN in all
// types, but for keys whose norms are computed. A page before and one after are
// null.
class Problem {
 public:
  Problem(const KvLayout& layout, int64_t first, int64_t last)
      : layout_(layout),
        first_(first),
        last_(last),
        first_page_(first / kPageTokens - 1) {
    const int64_t end = (std::max(last, first + 1) - 1) / kPageTokens + 1;
    pages_.push_back(nullptr);
    for (int64_t page = first_page_ + 1; page < end; ++page) {
      bytes_.emplace_back(static_cast<size_t>(layout_.PageBytes()),
                          std::byte{0xff});
      pages_.push_back(InPlace(bytes_.back().data()));
    }
    pages_.push_back(nullptr);
    std::mt19937 random(7);
    NormalFloats normal;
    std::vector<float> key(static_cast<size_t>(layout_.head_dim));
    for (int64_t j = first; j < last; ++j) {
      for (int head = 0; head < layout_.kv_heads; ++head) {
        const float size = std::exp(3 * normal(random));
        for (float& x : key) x = size * normal(random);
        SetKey(j, head, key);
      }
    }
  }
  Problem(const Problem&) = delete;

  void SetKey(int64_t j, int head, const std::vector<float>& key) {
    KvRowFromF32(layout_.type_k, key.data(), layout_.head_dim, Key(j, head));
  }

  KeyNormsParams Params() const {
    return {layout_,     pages_.data(),
            first_page_, static_cast<int64_t>(pages_.size()),
            first_,      last_,
            nullptr,     stride()};
  }
  int64_t stride() const { return last_ - first_ + 3; }

  // Returns [kv_heads, stride()], converted from f16.
  std::vector<float> Run(Stream& stream) const {
    KeyNormsParams p = Params();
    OnDevicePages pages(stream, pages_, layout_.PageBytes());
    OnDevice<uint16_t> out(
        stream,
        std::vector<uint16_t>(static_cast<size_t>(layout_.kv_heads * stride()),
                              kPoisonF16));
    p.pages = pages.data();
    p.out = out.data();
    const absl::Status status = KeyNorms(stream, p);
    pages.Forget();
    EXPECT_TRUE(status.ok()) << status;
    std::vector<float> norms;
    for (const uint16_t half : out.Read()) norms.push_back(F32FromF16(half));
    return norms;
  }

  // Compares with the formula in double. A sum of n squares is off by at most n
  // roundings, its root by half of that and one more, and the f16 by another.
  void ExpectNorms(const std::vector<float>& out) {
    std::vector<float> key(static_cast<size_t>(layout_.head_dim));
    for (int head = 0; head < layout_.kv_heads; ++head) {
      for (int64_t j = first_; j < first_ + stride(); ++j) {
        const float norm =
            out[static_cast<size_t>(head * stride() + j - first_)];
        if (j >= last_) {
          ASSERT_TRUE(std::isnan(norm));
          continue;
        }
        KvRowToF32(layout_.type_k, Key(j, head), layout_.head_dim, key.data());
        double sum = 0;
        for (const float x : key) sum += static_cast<double>(x) * x;
        const double exact = std::sqrt(sum);
        ASSERT_NEAR(
            norm, exact,
            exact * (0x1p-11 + (layout_.head_dim + 2) * 0x1p-25) + 0x1p-25)
            << Name() << ": head " << head << " position " << j;
      }
    }
  }

  std::string Name() const {
    return std::string(InfoOf(layout_.type_k).name) + " " +
           std::to_string(layout_.head_dim) + " " + std::to_string(first_) +
           " " + std::to_string(last_);
  }

 private:
  std::byte* Key(int64_t j, int head) {
    return bytes_[static_cast<size_t>(j / kPageTokens - first_page_ - 1)]
               .data() +
           layout_.KOffset(head, static_cast<int>(j % kPageTokens));
  }

  KvLayout layout_;
  int64_t first_;
  int64_t last_;
  int64_t first_page_;
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<DevicePtr<std::byte>> pages_;
};

class KeyNormsBackendTest : public ThreeStreamsTest {
 protected:
  void Check(const KvLayout& layout, int64_t first, int64_t last) {
    Problem problem(layout, first, last);
    const std::vector<float> out = problem.Run(*one_);
    const std::vector<float> expected = problem.Run(*ref_);
    problem.ExpectNorms(expected);
    problem.ExpectNorms(out);
    EXPECT_TRUE(SameBits(out, problem.Run(*three_))) << problem.Name();
    if (!HasFma()) return;
    EXPECT_TRUE(SameBits(out, expected)) << problem.Name();
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, KeyNormsBackendTest,
                         testing::ValuesIn(FastBackends()), NameOfBackend);

TEST(KeyNormsTest, HandWorked) {
  for (DeviceKind device : {DeviceKind::kRef, DeviceKind::kCpu}) {
    Problem problem({DType::kF32, DType::kF32, 2, 8}, 5, 6);
    problem.SetKey(5, 0, {3, 0, 0, 0, 0, 0, 0, -4});
    problem.SetKey(5, 1, {1, 1, 1, 1, -2, 2, 2, 3});
    const std::vector<float> out = problem.Run(*MakeStream(device));
    EXPECT_EQ(out[0], 5.0f);
    EXPECT_EQ(out[4], 5.0f);
  }
}

TEST_P(KeyNormsBackendTest, EveryKvTypeAndShape) {
  for (int64_t head_dim : Fewer({8, 24, 40, 64, 96, 128}, {8, 40, 96})) {
    for (DType type : KvTypes(static_cast<int>(head_dim))) {
      Check({type, DType::kF16, 3, static_cast<int>(head_dim)}, 100, 150);
    }
  }
}

TEST_P(KeyNormsBackendTest, EveryRangeInAndAcrossPages) {
  for (int64_t first : {0, 1, 15, 127, 128, 1000000}) {
    for (int64_t size : {0, 1, 15, 16, 17, 128, 129, 300}) {
      Check({DType::kF16, DType::kF32, 2, 8}, first, first + size);
    }
  }
}

TEST_P(KeyNormsBackendTest, AFaultShowsInItsNorm) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (Stream* stream : {ref_.get(), one_.get()}) {
    for (float fault : {kPoison, kInf, -kInf, 1e6f}) {
      Problem problem({DType::kF32, DType::kF32, 1, 24}, 3, 30);
      std::vector<float> key(24, 1.0f);
      key[20] = fault;
      problem.SetKey(17, 0, key);
      const std::vector<float> out = problem.Run(*stream);
      for (size_t i = 0; i < 27; ++i) {
        EXPECT_EQ(std::isfinite(out[i]), i != 14) << fault << " " << i;
      }
    }
  }
}

TEST(KeyNormsTest, RefusesWhatItCannotRead) {
  const std::unique_ptr<Stream> stream = MakeStream(DeviceKind::kCpu);
  const Problem problem({DType::kF16, DType::kF16, 2, 16}, 130, 300);
  std::vector<uint16_t> out(static_cast<size_t>(2 * problem.stride()),
                            kPoisonF16);
  const auto code_of = [&](auto change) {
    KeyNormsParams p = problem.Params();
    p.out = InPlace(out.data());
    change(p);
    return CodeOf(KeyNorms(*stream, p));
  };
  EXPECT_EQ(code_of([](auto& p) { p.layout.kv_heads = 0; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.layout.head_dim = 0; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.layout.head_dim = 12; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.out_stride = 169; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.layout.type_k = DType::kQ8_0; }),
            "invalid_kv_type");
  EXPECT_EQ(code_of([](auto& p) { p.first = -1; }), "invalid_position");
  EXPECT_EQ(code_of([](auto& p) { p.first = 301; }), "invalid_position");
  EXPECT_EQ(code_of([](auto& p) { p.last = int64_t{1} << 60; }),
            "invalid_position");
  EXPECT_EQ(code_of([](auto& p) { p.first_page = 2; }), "invalid_position");
  EXPECT_EQ(code_of([](auto& p) { p.num_pages = 2; }), "invalid_position");
  // Pages 0 and 3 are null.
  EXPECT_EQ(code_of([](auto& p) { p.first = p.last = 127, ++p.last; }),
            "invalid_position");
  EXPECT_EQ(code_of([](auto& p) { p.first = p.last = 384, ++p.last; }),
            "invalid_position");
  const auto params = problem.Params();
  std::vector<DevicePtr<std::byte>> pages(params.pages,
                                          params.pages + params.num_pages);
  pages[2] += 2;
  EXPECT_EQ(code_of([&](auto& p) { p.pages = pages.data(); }), "invalid_page");
  for (uint16_t half : out) EXPECT_EQ(half, kPoisonF16);
}

}  // namespace
}  // namespace tiercel::key_norms_test
