#include "kernels/kv/chunk_means.h"

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

namespace tiercel {
namespace {

constexpr uint16_t kPoisonF16 = 0x7e00;  // NaN

struct Case {
  DType type = DType::kF32;
  int kv_heads = 1;
  int head_dim = 8;
  int chunk = 8;
  int64_t begin = 0;
  int64_t first_chunk = 0;
  int64_t num_chunks = 1;
};

std::string NameOfCase(const Case& c) {
  std::string name(InfoOf(c.type).name);
  for (int64_t n : {int64_t{c.kv_heads}, int64_t{c.head_dim}, int64_t{c.chunk},
                    c.begin, c.first_chunk, c.num_chunks}) {
    name += " " + std::to_string(n);
  }
  return name;
}

// The pages of a case. All bytes, also those of V, are 0xff, which is NaN in
// all types, but for keys that a chunk covers. A page before and one after are
// null.
class Problem {
 public:
  explicit Problem(const Case& c)
      : case_(c),
        layout_{c.type, DType::kF32, c.kv_heads, c.head_dim},
        stride_(c.num_chunks * c.head_dim + 3),
        first_page_(c.first_chunk * c.chunk / kPageTokens - 1) {
    const int64_t end = (c.first_chunk + c.num_chunks) * c.chunk;
    const int64_t pages = (end + kPageTokens - 1) / kPageTokens - first_page_;
    for (int64_t i = 0; i < pages; ++i) {
      bytes_.emplace_back(static_cast<size_t>(layout_.PageBytes()),
                          std::byte{0xff});
    }
    pages_.push_back(nullptr);
    for (size_t i = 1; i < bytes_.size(); ++i) {
      pages_.push_back(InPlace(bytes_[i].data()));
    }
    pages_.push_back(nullptr);

    std::mt19937 random(99);
    NormalFloats normal(0.3f, 2.0f);
    std::vector<float> row(static_cast<size_t>(c.head_dim));
    for (int64_t t = std::max(c.begin, c.first_chunk * c.chunk); t < end; ++t) {
      for (int head = 0; head < c.kv_heads; ++head) {
        for (float& x : row) x = normal(random);
        SetK(t, head, row);
      }
    }
  }
  Problem(const Problem&) = delete;

  void SetK(int64_t t, int head, const std::vector<float>& row) {
    KvRowFromF32(case_.type, row.data(), case_.head_dim, K(t, head));
  }
  std::vector<float> GetK(int64_t t, int head) {
    std::vector<float> row(static_cast<size_t>(case_.head_dim));
    KvRowToF32(case_.type, K(t, head), case_.head_dim, row.data());
    return row;
  }

  ChunkMeansParams Params() const {
    return {.layout = layout_,
            .pages = pages_.data(),
            .first_page = first_page_,
            .num_pages = std::ssize(pages_),
            .begin = case_.begin,
            .chunk = case_.chunk,
            .first_chunk = case_.first_chunk,
            .num_chunks = case_.num_chunks,
            .out = nullptr,
            .out_stride = stride_,
            .norms = nullptr,
            .norms_stride = 0};
  }

  // Returns [kv_heads, stride()], converted from f16.
  std::vector<float> Run(Stream& stream) const {
    const auto poisoned = [&](int64_t stride) {
      return OnDevice<uint16_t>(
          stream,
          std::vector<uint16_t>(static_cast<size_t>(case_.kv_heads * stride),
                                kPoisonF16));
    };
    ChunkMeansParams p = Params();
    OnDevicePages pages(stream, pages_, layout_.PageBytes());
    p.pages = pages.data();
    OnDevice<uint16_t> out = poisoned(stride_);
    p.out = out.data();
    p.norms_stride = case_.num_chunks + 2;
    OnDevice<uint16_t> norms = poisoned(p.norms_stride);
    p.norms = norms.data();
    const absl::Status status = ChunkMeans(stream, p);
    EXPECT_TRUE(status.ok()) << status;
    std::vector<float> means;
    for (const uint16_t half : out.Read()) means.push_back(F32FromF16(half));
    ExpectNorms(means, norms.Read());
    p.norms = nullptr;
    OnDevice<uint16_t> alone = poisoned(stride_);
    p.out = alone.data();
    EXPECT_TRUE(ChunkMeans(stream, p).ok());
    pages.Forget();
    EXPECT_EQ(alone.Read(), out.Read());
    return means;
  }

  int64_t stride() const { return stride_; }

  // The root of a sum of n squares is off by half of n roundings, by one of its
  // own, and by that to f16.
  void ExpectNorms(const std::vector<float>& means,
                   const std::vector<uint16_t>& norms) const {
    const int64_t stride = case_.num_chunks + 2;
    for (int64_t i = 0; i < std::ssize(norms); ++i) {
      const float norm = F32FromF16(norms[static_cast<size_t>(i)]);
      if (i % stride >= case_.num_chunks) {
        ASSERT_TRUE(std::isnan(norm)) << "written between heads";
        continue;
      }
      double sum = 0;
      for (int64_t d = 0; d < case_.head_dim; ++d) {
        const float x = means[static_cast<size_t>(
            i / stride * stride_ + i % stride * case_.head_dim + d)];
        sum += double{x} * double{x};
      }
      if (!std::isfinite(sum)) {
        EXPECT_FALSE(std::isfinite(norm)) << NameOfCase(case_) << ": " << i;
        continue;
      }
      const double expected = std::sqrt(sum);
      ASSERT_NEAR(norm, expected,
                  expected * (0x1.01p-11 + (case_.head_dim + 2) * 0x1p-24))
          << NameOfCase(case_) << ": norm " << i;
    }
  }

  // A sum of n floats in order is off by at most n - 1 roundings of the sum of
  // magnitudes, the quotient by one more, and the f16 by another, which is half
  // of 2^-24 for numbers below 2^-14.
  void ExpectMeans(const std::vector<float>& out) {
    const auto dim = static_cast<size_t>(case_.head_dim);
    for (int head = 0; head < case_.kv_heads; ++head) {
      auto got = out.begin() + head * stride_;
      for (int64_t c = 0; c < case_.num_chunks; ++c) {
        const int64_t start = (case_.first_chunk + c) * case_.chunk;
        std::vector<double> sum(dim, 0.0);
        std::vector<double> magnitude(dim, 0.0);
        double n = 0;
        for (int64_t t = start; t < start + case_.chunk; ++t) {
          if (t < case_.begin) continue;
          const std::vector<float> row = GetK(t, head);
          for (size_t d = 0; d < dim; ++d) {
            sum[d] += row[d];
            magnitude[d] += std::fabs(row[d]);
          }
          n += 1;
        }
        for (size_t d = 0; d < dim; ++d) {
          const double to_f16 =
              std::max(std::fabs(sum[d] / n) * 0x1p-11, 0x1p-25);
          ASSERT_NEAR(*got++, sum[d] / n,
                      1.001 * (n * 0x1p-24 * magnitude[d] / n + to_f16))
              << NameOfCase(case_) << ": head " << head << " chunk " << c
              << " element " << d;
        }
      }
      for (const auto end = out.begin() + (head + 1) * stride_; got < end;) {
        ASSERT_TRUE(std::isnan(*got++)) << "written between heads";
      }
    }
  }

 private:
  std::byte* K(int64_t t, int head) {
    return bytes_[static_cast<size_t>(t / kPageTokens - first_page_)].data() +
           layout_.KOffset(head, static_cast<int>(t % kPageTokens));
  }

  Case case_;
  KvLayout layout_;
  int64_t stride_;
  int64_t first_page_;
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<DevicePtr<std::byte>> pages_;
};

TEST(ChunkMeansTest, HandWorked) {
  for (DeviceKind device : {DeviceKind::kRef, DeviceKind::kCpu}) {
    Case c;
    c.chunk = 4;
    c.begin = 1;
    c.num_chunks = 2;
    Problem problem(c);
    // The first element depends on the order of the sum: 9 - 3e8 is -3e8.
    const float first[8] = {kPoison, 3e8f, -3e8f, 9.0f, 1.0f, 2.0f, 3.0f, 5.0f};
    const float last[8] = {kPoison, 1.0f, 2.0f, 4.5f, 0.0f, 0.0f, 0.0f, -1.0f};
    for (int64_t t = 1; t < 8; ++t) {
      std::vector<float> row(8, 0.0f);
      row[0] = first[t];
      row[7] = last[t];
      problem.SetK(t, 0, row);
    }
    const std::vector<float> out = problem.Run(*MakeStream(device));
    EXPECT_EQ(out[0], 3.0f);
    EXPECT_EQ(out[7], 2.5f);  // mean of three: position 0 does not exist
    EXPECT_EQ(out[8], 2.75f);
    EXPECT_EQ(out[15], -0.25f);
    for (size_t d = 1; d < 7; ++d) {
      EXPECT_EQ(out[d], 0.0f);
      EXPECT_EQ(out[8 + d], 0.0f);
    }
  }
}

class ChunkMeansBackendTest : public ThreeStreamsTest {
 protected:
  // Compares with the formula, and bit for bit with the reference and with more
  // threads.
  void Check(const Case& c) {
    Problem problem(c);
    const std::vector<float> out = problem.Run(*one_);
    problem.ExpectMeans(out);
    EXPECT_TRUE(SameBits(problem.Run(*three_), out)) << NameOfCase(c);
    EXPECT_TRUE(SameBits(problem.Run(*ref_), out)) << NameOfCase(c);
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, ChunkMeansBackendTest,
                         testing::ValuesIn(FastBackends()), NameOfBackend);

TEST_P(ChunkMeansBackendTest, EveryKvTypeAndShape) {
  for (int64_t head_dim : Fewer({1, 8, 33, 40, 64, 96, 128}, {1, 40, 96})) {
    for (DType type : KvTypes(static_cast<int>(head_dim))) {
      for (int chunk : {1, 8, 32, kPageTokens}) {
        for (int64_t num_chunks : {0, 1, 5}) {
          Case c;
          c.type = type;
          c.kv_heads = 3;
          c.head_dim = static_cast<int>(head_dim);
          c.chunk = chunk;
          c.first_chunk = 7;
          c.num_chunks = num_chunks;
          Check(c);
        }
      }
    }
  }
}

TEST_P(ChunkMeansBackendTest, AcrossPagesAndFar) {
  for (int chunk : {8, 64}) {
    for (int64_t first_chunk : {0, 1, 15, 16, 15001}) {
      for (int64_t num_chunks : {1, 2, 17, 40}) {
        Case c;
        c.type = DType::kF16;
        c.kv_heads = 2;
        c.head_dim = 16;
        c.chunk = chunk;
        c.first_chunk = first_chunk;
        c.num_chunks = num_chunks;
        Check(c);
      }
    }
  }
}

TEST_P(ChunkMeansBackendTest, BeginInsideTheFirstChunk) {
  for (int chunk : {8, kPageTokens}) {
    for (int64_t missing : {0, 1, chunk / 2, chunk - 1}) {
      for (DType type : KvTypes(64)) {
        Case c;
        c.type = type;
        c.kv_heads = 2;
        c.head_dim = 64;
        c.chunk = chunk;
        c.first_chunk = 21;
        c.begin = 21 * chunk + missing;
        c.num_chunks = 3;
        Check(c);
      }
    }
  }
}

TEST(ChunkMeansTest, ADigestDoesNotDependOnOtherChunks) {
  const std::unique_ptr<Stream> stream = MakeStream(DeviceKind::kCpu, 2);
  Case c;
  c.type = DType::kBF16;
  c.kv_heads = 2;
  c.head_dim = 40;
  c.begin = 3;
  c.num_chunks = 40;
  const Problem problem(c);
  const std::vector<float> all = problem.Run(*stream);
  for (int64_t chunk = 0; chunk < 40; ++chunk) {
    ChunkMeansParams p = problem.Params();
    p.first_chunk = chunk;
    p.num_chunks = 1;
    std::vector<uint16_t> out(80, kPoisonF16);
    p.out = InPlace(out.data());
    p.out_stride = 40;
    ASSERT_TRUE(ChunkMeans(*stream, p).ok());
    for (int head = 0; head < 2; ++head) {
      for (int64_t d = 0; d < 40; ++d) {
        ASSERT_EQ(
            F32FromF16(out[static_cast<size_t>(head * 40 + d)]),
            all[static_cast<size_t>(head * problem.stride() + chunk * 40 + d)]);
      }
    }
  }
}

TEST(ChunkMeansTest, AFaultStaysInItsChunk) {
  const std::unique_ptr<Stream> stream = MakeStream(DeviceKind::kCpu);
  for (float fault : {kPoison, std::numeric_limits<float>::infinity(), 1e6f}) {
    Case c;
    c.kv_heads = 2;
    c.num_chunks = 3;
    Problem problem(c);
    std::vector<float> row = problem.GetK(13, 1);
    row[5] = fault;
    problem.SetK(13, 1, row);
    const std::vector<float> out = problem.Run(*stream);
    for (int64_t i = 0; i < 2 * problem.stride(); ++i) {
      const bool between = i % problem.stride() >= 24;
      const bool faulty = i == problem.stride() + 8 + 5;
      EXPECT_EQ(std::isfinite(out[static_cast<size_t>(i)]), !between && !faulty)
          << i;
    }
  }
}

TEST(ChunkMeansTest, RefusesWhatItCannotRead) {
  const std::unique_ptr<Stream> stream = MakeStream(DeviceKind::kCpu);
  Case c;
  c.type = DType::kF16;
  c.kv_heads = 2;
  c.head_dim = 40;
  c.first_chunk = 16;
  c.num_chunks = 20;  // pages 1 and 2
  const Problem problem(c);
  std::vector<uint16_t> out(static_cast<size_t>(2 * problem.stride()),
                            kPoisonF16);
  const auto code_of = [&](auto change) {
    ChunkMeansParams p = problem.Params();
    p.out = InPlace(out.data());
    change(p);
    return CodeOf(ChunkMeans(*stream, p));
  };
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(code_of([](auto& p) { p.layout.kv_heads = 0; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.layout.head_dim = 0; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.chunk = 0; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.chunk = -8; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.chunk = 12; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.chunk = 256; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.num_chunks = -1; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.num_chunks = kMost; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.out_stride = 799; }), "invalid_sizes");
  EXPECT_EQ(code_of([&](auto& p) {
              p.norms = InPlace(out.data());
              p.norms_stride = 19;
            }),
            "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.layout.type_k = DType::kQ8_0; }),
            "invalid_kv_type");
  EXPECT_EQ(code_of([](auto& p) { p.layout.type_k = DType::kQ6_K; }),
            "invalid_kv_type");
  EXPECT_EQ(code_of([](auto& p) { p.begin = -1; }), "invalid_position");
  EXPECT_EQ(code_of([](auto& p) { p.first_chunk = -1; }), "invalid_position");
  EXPECT_EQ(code_of([](auto& p) { p.first_chunk = kMost; }),
            "invalid_position");
  // Chunk 16 ends with position 135.
  ChunkMeansParams some = problem.Params();
  some.begin = 135;
  some.out = InPlace(out.data());
  EXPECT_TRUE(ChunkMeans(*stream, some).ok());
  EXPECT_EQ(code_of([](auto& p) { p.begin = 136; }), "invalid_position");
  EXPECT_EQ(code_of([](auto& p) { p.begin = kMost; }), "invalid_position");
  EXPECT_EQ(code_of([](auto& p) { p.first_page = 2; }), "invalid_position");
  EXPECT_EQ(code_of([](auto& p) { p.num_pages = 2; }), "invalid_position");
  // Pages 0 and 3 are null.
  EXPECT_EQ(code_of([](auto& p) { p.first_chunk = 15; }), "invalid_position");
  EXPECT_EQ(code_of([](auto& p) { p.first_chunk = 44; }), "invalid_position");
}

}  // namespace
}  // namespace tiercel
