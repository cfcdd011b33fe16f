// Compares digests that are updated step by step with those of the sequence as
// it is.

#include "offload/retrieval/digests.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/kv/kv_row.h"
#include "kernels/kv/testing.h"
#include "kernels/number/half.h"
#include "kernels/system/testing.h"
#include "offload/retrieval/testing.h"
#include "tests/setup/draws.h"

namespace tiercel::digests_test {
namespace {

constexpr int kLayers = 2;
constexpr int kKvHeads = 2;
constexpr int kHeads = 4;
constexpr int64_t kContext = 300;

struct Case {
  DType type = DType::kF32;
  int chunk = 8;
  int64_t begin = 0;
};

// The keys of a sequence, which a test may write and take back. Positions that
// do not exist are NaN.
class Keys {
 public:
  explicit Keys(const Case& c)
      : layout_{c.type, DType::kF32, kKvHeads, IsKvType(c.type, 8) ? 8 : 32},
        case_(c),
        first_page_(c.begin / kPageTokens) {
    const int64_t pages =
        (c.begin + kContext + kPageTokens - 1) / kPageTokens - first_page_;
    for (int layer = 0; layer < kLayers; ++layer) {
      for (int64_t i = 0; i < pages; ++i) {
        bytes_[layer].emplace_back(static_cast<size_t>(layout_.PageBytes()),
                                   std::byte{0xff});
        pages_[layer].push_back(InPlace(bytes_[layer].back().data()));
      }
    }
  }

  const KvLayout& layout() const { return layout_; }

  KvPages Pages(int layer, int64_t end) {
    return {.layout = layout_,
            .pages = pages_[layer].data(),
            .first_page = first_page_,
            .num_pages = std::ssize(pages_[layer]),
            .begin = case_.begin,
            .end = end,
            .view = nullptr};
  }

  void Write(int64_t position, std::mt19937& random) {
    NormalFloats normal(0.2f, 1.5f);
    std::vector<float> row(static_cast<size_t>(layout_.head_dim));
    ForAll(position, [&](std::byte* k) {
      for (float& x : row) x = normal(random);
      KvRowFromF32(layout_.type_k, row.data(), layout_.head_dim, k);
    });
  }
  void TakeBack(int64_t position) {
    ForAll(position, [&](std::byte* k) {
      std::memset(k, 0xff, static_cast<size_t>(layout_.KRowBytes()));
    });
  }

  // f16 [kv_heads, chunks, head_dim]
  std::vector<uint16_t> Means(int layer, int64_t chunks) {
    std::vector<uint16_t> means;
    const int64_t first = case_.begin / case_.chunk;
    std::vector<float> row(static_cast<size_t>(layout_.head_dim));
    for (int head = 0; head < kKvHeads; ++head) {
      for (int64_t chunk = first; chunk < first + chunks; ++chunk) {
        std::vector<float> sum(row.size(), 0.0f);
        const int64_t from = std::max(case_.begin, chunk * case_.chunk);
        const int64_t to = (chunk + 1) * case_.chunk;
        for (int64_t t = from; t < to; ++t) {
          const StoredRow stored = RowAt(Pages(layer, 0), head, t);
          KvRowToF32(layout_.type_k, stored.k.data(), layout_.head_dim,
                     row.data());
          for (size_t i = 0; i < row.size(); ++i) sum[i] += row[i];
        }
        for (float x : sum) {
          means.push_back(F16FromF32(x / static_cast<float>(to - from)));
        }
      }
    }
    return means;
  }

 private:
  template <typename F>
  void ForAll(int64_t position, const F& f) {
    for (auto& pages : pages_) {
      for (int head = 0; head < kKvHeads; ++head) {
        f(HostAddress(pages[static_cast<size_t>(position / kPageTokens -
                                                first_page_)]) +
          layout_.KOffset(head, static_cast<int>(position % kPageTokens)));
      }
    }
  }

  const KvLayout layout_;
  const Case case_;
  const int64_t first_page_;
  std::vector<std::vector<std::byte>> bytes_[kLayers];
  std::vector<DevicePtr<std::byte>> pages_[kLayers];
};

void Check(const Digests& digests, Keys& keys, const Case& c, int64_t end) {
  const int64_t chunks = end / c.chunk - c.begin / c.chunk;
  const int64_t head_dim = keys.layout().head_dim;
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::vector<uint16_t> expected = keys.Means(layer, chunks);
    for (int64_t i = 0; i < kKvHeads * chunks; ++i) {
      const int64_t head = i / chunks;
      const auto mean = expected.begin() + i * head_dim;
      const uint16_t* const got = HostAddress(digests.MeansOf(layer)) +
                                  head * digests.HeadElements() +
                                  i % chunks * head_dim;
      ASSERT_TRUE(std::equal(mean, mean + head_dim, got))
          << "layer " << layer << " head " << head << " chunk " << i % chunks;
      float sum = 0;
      for (auto x = mean; x != mean + head_dim; ++x) {
        sum = std::fma(F32FromF16(*x), F32FromF16(*x), sum);
      }
      ASSERT_EQ(HostAddress(digests.NormsOf(
                    layer))[head * digests.shape().Chunks() + i % chunks],
                F16FromF32(std::sqrt(sum)))
          << "layer " << layer << " head " << head << " chunk " << i % chunks;
    }
  }
}

// They are the same after any mix of steps that keep some of their rows,
// truncations, prompts and copies.
TEST(DigestsTest, AreThoseOfTheSequenceAsItIs) {
  PoisonedMemory memory;
  const auto stream = MakeStream(DeviceKind::kCpu);
  unsigned seed = 0;
  for (const DType type : KvTypes(32)) {
    for (const int chunk : {8, 32, 128}) {
      for (const int64_t begin : {0, 5, 127, 128, 1000}) {
        const Case c = {type, chunk, begin};
        SCOPED_TRACE(testing::Message() << "chunk " << chunk << ", begin "
                                        << begin << ", seed " << seed);
        std::mt19937 random(seed++);
        const auto below = [&random](int64_t n) {
          return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
        };
        Keys keys(c);
        Digests digests = *Digests::Create(memory, {.layout = keys.layout(),
                                                    .layers = kLayers,
                                                    .heads = kHeads,
                                                    .chunk = chunk,
                                                    .begin = begin,
                                                    .context = kContext,
                                                    .norms = true});
        int64_t end = begin;
        const auto cut_to = [&](int64_t to) {
          while (end > to) keys.TakeBack(--end);
          digests.Truncate(end);
        };
        for (int turn = 0; turn < 30; ++turn) {
          const int64_t room = begin + kContext - end;
          const int64_t rows =
              std::min(room, 1 + below(below(4) == 0 ? 200 : 20));
          if (rows == 0 || below(8) == 0) {
            cut_to(begin + below(end - begin + 1));
            continue;
          }
          for (int64_t i = 0; i < rows; ++i) keys.Write(end + i, random);
          if (below(5) == 0 && end + rows < begin + kContext) {
            // Update is not called for these rows, but for the step after.
            end += rows;
            keys.Write(end, random);
            for (int layer = 0; layer < kLayers; ++layer) {
              ASSERT_TRUE(
                  digests.Update(*stream, layer, keys.Pages(layer, end), 1)
                      .ok());
            }
            ++end;
            Check(digests, keys, c, end);
            if (HasFatalFailure()) return;
            continue;
          }
          for (int layer = 0; layer < kLayers; ++layer) {
            ASSERT_TRUE(
                digests.Update(*stream, layer, keys.Pages(layer, end), rows)
                    .ok());
          }
          end += rows;
          if (below(2) == 0) cut_to(end - below(rows + 1));
          if (below(6) == 0) {
            Digests copy = *digests.Copy(memory);
            std::swap(copy, digests);
          }
          Check(digests, keys, c, end);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// A copy goes on from a position from which the original was truncated.
TEST(DigestsTest, ACopyGoesItsOwnWay) {
  PoisonedMemory memory;
  const auto stream = MakeStream(DeviceKind::kCpu);
  std::mt19937 random(1);
  const Case c = {.chunk = 16};
  Keys keys(c);
  Keys others(c);
  Digests digests = *Digests::Create(memory, {.layout = keys.layout(),
                                              .layers = kLayers,
                                              .heads = kHeads,
                                              .chunk = 16,
                                              .begin = 0,
                                              .context = kContext,
                                              .norms = true});
  const auto write = [&](Keys& to, Digests& of) {
    for (int64_t t = 0; t < 100; ++t) to.Write(t, random);
    for (int layer = 0; layer < kLayers; ++layer) {
      ASSERT_TRUE(of.Update(*stream, layer, to.Pages(layer, 0), 100).ok());
    }
  };
  write(keys, digests);
  Digests copy = *digests.Copy(memory);
  Check(copy, keys, c, 100);
  write(others, copy);
  Check(copy, others, c, 100);
  Check(digests, keys, c, 100);
}

// A context may end within a chunk, or before one is complete.
TEST(DigestsTest, TakeWhatTheyNeedAndNoMore) {
  Digests::Shape shape = {
      .layout = {DType::kF16, DType::kF16, 2, 8}, .layers = 3, .heads = 4};
  const auto chunks = [&](int64_t begin, int64_t context) {
    shape.begin = begin;
    shape.context = context;
    EXPECT_EQ(shape.Bytes(),
              AlignedBytes(3 * 2 * shape.Chunks() * 8 * int64_t{2}));
    PoisonedMemory memory;
    const auto digests = Digests::Create(memory, shape);
    EXPECT_TRUE(digests.ok()) << digests.status();
    EXPECT_EQ(memory.used(), shape.Bytes());
    shape.norms = true;
    EXPECT_EQ(shape.Bytes() - memory.used(),
              AlignedBytes(3 * 2 * shape.Chunks() * int64_t{2}));
    PoisonedMemory more;
    const auto with_norms = Digests::Create(more, shape);
    EXPECT_TRUE(with_norms.ok()) << with_norms.status();
    EXPECT_EQ(more.used(), shape.Bytes());
    shape.norms = false;
    return shape.Chunks();
  };
  EXPECT_EQ(chunks(0, 31), 0);
  EXPECT_EQ(chunks(0, 32), 1);
  EXPECT_EQ(chunks(31, 1), 1);
  EXPECT_EQ(chunks(31, 32), 1);
  EXPECT_EQ(chunks(31, 33), 2);
  EXPECT_EQ(chunks(int64_t{1} << 40, 100), 3);
}

}  // namespace
}  // namespace tiercel::digests_test
