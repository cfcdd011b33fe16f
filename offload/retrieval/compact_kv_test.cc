// Compares the rows that each head sees through a compact KV with those that
// were put there, by position.

#include "offload/retrieval/compact_kv.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/system/testing.h"
#include "offload/retrieval/testing.h"

namespace tiercel::compact_kv_test {
namespace {

constexpr int kLayers = 2;
constexpr int kHeads = 3;
constexpr auto kGoOn = [] { return false; };

// Bytes that differ from those of any other layer, head, position or version.
// A cell that was not written has the position -1.
StoredRow RowOf(const KvLayout& layout, int layer, int head, int64_t position,
                uint32_t version) {
  const auto fill = [&](int64_t bytes, uint64_t which) {
    std::vector<std::byte> row(static_cast<size_t>(bytes));
    auto at = static_cast<uint64_t>(position);
    std::memcpy(row.data(), &at, sizeof(at));
    uint64_t word = (at * kLayers + static_cast<uint64_t>(layer)) * kHeads +
                    static_cast<uint64_t>(head);
    word = (word << 20 ^ version) << 1 | which;
    for (size_t i = sizeof(at); i < row.size(); i += sizeof(word)) {
      word = word * 6364136223846793005u + 1442695040888963407u;
      std::memcpy(&row[i], &word, std::min(sizeof(word), row.size() - i));
    }
    return row;
  };
  return {fill(layout.KRowBytes(), 0), fill(layout.VRowBytes(), 1)};
}

int64_t PositionOf(const StoredRow& row) {
  int64_t position = 0;
  std::memcpy(&position, row.k.data(), sizeof(position));
  return position;
}

// A compact KV and what it should hold.
class Life {
 public:
  Life(DeviceMemory& memory, const CompactKv::Shape& shape, int64_t begin)
      : shape_(shape),
        begin_(begin),
        kv_(*CompactKv::Create(memory, shape, begin)),
        chosen_(kLayers * kHeads) {}

  CompactKv& kv() { return kv_; }
  int64_t room() const {
    return kv_.RecentRoom() - (kv_.end() - kv_.recent_begin());
  }

  void Reset(int64_t recent_begin, int64_t end) {
    kv_.Reset(recent_begin, end);
    chosen_.assign(chosen_.size(), {});
    places_.clear();
    Fill(recent_begin, end);
  }

  // Writes rows of the target, which may lie beyond the end.
  void Fill(int64_t begin, int64_t end) {
    ++version_;
    for (int64_t t = begin; t < end; ++t) versions_[t] = version_;
    for (int layer = 0; layer < kLayers; ++layer) {
      std::vector<KvRun> runs;
      kv_.Recent(layer, begin, end, &runs);
      int64_t rows = 0;
      for (const KvRun& run : runs) {
        rows += run.rows;
        EXPECT_LE(begin, run.position);
        EXPECT_LE(run.position + run.rows, end);
        Put(layer, run);
      }
      EXPECT_EQ(rows, kHeads * (end - begin));
    }
  }

  // Writes rows of a draft.
  void Draft(int64_t rows) {
    ++version_;
    for (int layer = 0; layer < kLayers; ++layer) {
      const KvPages pages = *kv_.BeginLayer(layer, kGoOn);
      EXPECT_LE(pages.end + rows,
                (pages.first_page + pages.num_pages) * kPageTokens);
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t t = kv_.end() + i;
        versions_[t] = version_;
        for (int head = 0; head < kHeads; ++head) {
          SetRowAt(pages, head, pages.end + i,
                   RowOf(shape_.layout, layer, head, t, version_));
        }
      }
      kv_.EndLayer(layer);
    }
    kv_.Extend(rows);
  }

  void Choose(int layer, int head, const std::vector<int32_t>& chunks) {
    std::vector<KvRun> missing;
    kv_.Choose(layer, head, chunks, &missing);
    std::set<int32_t>& had = Chosen(layer, head);
    std::set<int64_t> expected;  // first positions
    for (int32_t chunk : chunks) {
      if (had.count(chunk) == 0) expected.insert(Positions(chunk).begin);
    }
    for (const KvRun& run : missing) {
      EXPECT_EQ(run.layer, layer);
      EXPECT_EQ(run.head, head);
      EXPECT_EQ(expected.erase(run.position), 1u) << run.position;
      EXPECT_EQ((run.position + run.rows) % shape_.chunk, 0);
      EXPECT_LE(run.rows, shape_.chunk);
      for (int64_t i = 0; i < run.rows; ++i) {
        versions_.emplace(run.position + i, 0);
      }
      Put(layer, run);
    }
    EXPECT_TRUE(expected.empty());
    had = {chunks.begin(), chunks.end()};
  }

  void Check() {
    constexpr int64_t kWindows[] = {1, 20, 100000};
    for (const int64_t window : {int64_t{0}, kWindows[++checks_ % 3]}) {
      kv_.SetWindow(window);
      for (int layer = 0; layer < kLayers; ++layer) {
        const KvPages pages = *kv_.BeginLayer(layer, kGoOn);
        for (int head = 0; head < kHeads; ++head) {
          CheckHead(pages, layer, head, window);
        }
      }
    }
    kv_.SetWindow(0);
  }

 private:
  std::set<int32_t>& Chosen(int layer, int head) {
    return chosen_[static_cast<size_t>(layer * kHeads + head)];
  }
  PositionRange Positions(int32_t chunk) const {
    const int64_t at = (begin_ / shape_.chunk + chunk) * shape_.chunk;
    return {std::max(at, begin_), at + shape_.chunk};
  }

  void Put(int layer, const KvRun& run) {
    EXPECT_LE(run.position % kPageTokens + run.rows, kPageTokens);
    EXPECT_GE(run.position, begin_);
    const KvLayout& layout = shape_.layout;
    for (int64_t i = 0; i < run.rows; ++i) {
      const int64_t t = run.position + i;
      const StoredRow row = RowOf(layout, layer, run.head, t, versions_.at(t));
      std::memcpy(HostAddress(run.k + i * layout.KRowBytes()), row.k.data(),
                  row.k.size());
      std::memcpy(HostAddress(run.v + i * layout.VRowBytes()), row.v.data(),
                  row.v.size());
    }
  }

  void CheckHead(const KvPages& pages, int layer, int head, int64_t window) {
    std::set<int64_t> expected;
    for (int32_t chunk : Chosen(layer, head)) {
      if (window > 0 && chunk >= shape_.sinks) continue;
      const PositionRange range = Positions(chunk);
      for (int64_t t = range.begin; t < range.end; ++t) expected.insert(t);
    }
    const int64_t newest = window > 0 ? kv_.end() + 1 - window : 0;
    for (int64_t t = std::max(kv_.recent_begin(), newest); t < kv_.end(); ++t) {
      expected.insert(t);
    }
    std::map<int64_t, int64_t>& places =
        places_[static_cast<size_t>(layer * kHeads + head)];
    std::map<int64_t, int64_t> now;
    for (const auto& [cell, row] : SeenCells(pages, head)) {
      const int64_t t = PositionOf(row);
      ASSERT_EQ(expected.erase(t), 1u) << "position " << t << ", cell " << cell;
      ASSERT_EQ(row, RowOf(shape_.layout, layer, head, t, versions_.at(t)));
      if (t >= kv_.recent_begin()) continue;
      now[t] = cell;
      // A position that stays in view stays in its cell.
      const auto before = places.find(t);
      if (before != places.end()) {
        ASSERT_EQ(cell, before->second) << t;
      }
    }
    ASSERT_TRUE(expected.empty()) << "position " << *expected.begin();
    if (window == 0) places = std::move(now);
  }

  const CompactKv::Shape shape_;
  const int64_t begin_;
  CompactKv kv_;
  std::vector<std::set<int32_t>> chosen_;
  std::map<size_t, std::map<int64_t, int64_t>> places_;
  std::map<int64_t, uint32_t> versions_;
  uint32_t version_ = 0;
  size_t checks_ = 0;
};

class CompactKvTest : public testing::Test {
 protected:
  CompactKv::Shape RandomShape() {
    constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16,
                                DType::kQ8_0, DType::kQ4_0};
    CompactKv::Shape shape;
    shape.layout = {kTypes[Below(5)], kTypes[Below(5)], kHeads, 32};
    shape.layers = kLayers;
    shape.chunk = static_cast<int>(8 << Below(5));
    shape.sinks = 1 + Below(3);
    shape.chunks = shape.sinks + Below(12);
    shape.recent_pages = 2 + Below(2);
    return shape;
  }
  int64_t Below(int64_t n) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(n));
  }

  // Chooses as many chunks before the newest positions as there is room for.
  void ChooseAll(Life& life, int64_t begin) {
    const CompactKv::Shape& shape = life.kv().shape();
    const int64_t there = std::max<int64_t>(
        0, life.kv().recent_begin() / shape.chunk - begin / shape.chunk);
    const int64_t count = std::min(shape.chunks, there);
    for (int layer = 0; layer < kLayers; ++layer) {
      for (int head = 0; head < kHeads; ++head) {
        std::set<int32_t> chunks;
        while (std::ssize(chunks) < count) {
          const int64_t next = std::ssize(chunks);
          chunks.insert(
              static_cast<int32_t>(next < shape.sinks ? next : Below(there)));
        }
        life.Choose(layer, head, {chunks.begin(), chunks.end()});
      }
    }
  }

  PoisonedMemory memory_;
  std::mt19937 random_;
};

TEST_F(CompactKvTest, ShowsWhatWasChosenAndTheNewest) {
  for (unsigned seed = 0; seed < (TriesAll() ? 16 : 8); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    random_.seed(seed);
    const CompactKv::Shape shape = RandomShape();
    constexpr int64_t kBegins[] = {0, 3, 1000, (int64_t{1} << 40) + 5};
    const int64_t begin = kBegins[Below(4)];
    Life life(memory_, shape, begin);
    const auto newest_from = [&](int64_t end) {
      const int64_t at = end - 1 - Below(shape.chunk + 20);
      return std::max(begin, at / shape.chunk * shape.chunk);
    };
    const auto reset = [&] {
      const int64_t end = begin + 1 + Below(500);
      const int64_t from = newest_from(end);
      life.Reset(from, end);
      ChooseAll(life, begin);
    };
    reset();
    for (int turn = 0; turn < 40; ++turn) {
      const int64_t rows = std::min(life.room(), 1 + Below(64));
      switch (Below(8)) {
        case 0:
          if (Below(3) == 0) reset();
          break;
        case 1:
          life.kv().Truncate(
              life.kv().recent_begin() +
              Below(life.kv().end() + 1 - life.kv().recent_begin()));
          break;
        case 2:
        case 3:
          life.Draft(rows);
          break;
        case 4: {
          const int64_t from = newest_from(life.kv().end());
          if (from < life.kv().recent_begin()) break;
          life.kv().DropBefore(from);
          ChooseAll(life, begin);
          break;
        }
        default:  // written beyond the end, and some of it kept
          life.Fill(life.kv().end(), life.kv().end() + rows);
          life.kv().Extend(Below(rows + 1));
      }
      life.Check();
      if (HasFailure()) return;
    }
  }
}

// The ring wraps again and again, over pages of positions that are long gone.
TEST_F(CompactKvTest, TheRingTurns) {
  CompactKv::Shape shape = RandomShape();
  shape.chunk = 32;
  shape.recent_pages = 2;
  Life life(memory_, shape, 5);
  life.Reset(5, 40);
  while (life.kv().end() < (TriesAll() ? 2000 : 1000)) {
    const int64_t from = (life.kv().end() - 10) / 32 * 32;
    life.kv().DropBefore(std::max<int64_t>(5, from));
    ChooseAll(life, 5);
    life.Draft(20);
    life.kv().Truncate(life.kv().end() - 20);
    life.Fill(life.kv().end(), life.kv().end() + 20);
    life.kv().Extend(17);
    life.Check();
    if (HasFailure()) return;
  }
}

TEST_F(CompactKvTest, TellsItsRoom) {
  CompactKv::Shape shape = RandomShape();
  shape.recent_pages = 3;
  Life life(memory_, shape, 0);
  life.Reset(0, 1);
  EXPECT_EQ(life.kv().RecentRoom(), 3 * kPageTokens);
  life.kv().DropBefore(kPageTokens + 8);
  EXPECT_EQ(life.kv().RecentRoom(), 3 * kPageTokens - 8);
  // A draft may use the ring to its last cell.
  life.Reset(8, 10);
  life.Draft(life.room());
  EXPECT_EQ(life.kv().end(), 3 * kPageTokens);
  life.Check();
}

}  // namespace
}  // namespace tiercel::compact_kv_test
