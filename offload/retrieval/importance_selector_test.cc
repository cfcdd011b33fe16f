// Chunks chosen by their keys or the means of these: the tests check how the
// ops are put together, and what is kept between steps and forgotten.

#include "offload/retrieval/importance_selector.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/number/half.h"
#include "kernels/select/importance.h"
#include "kernels/select/selector.h"
#include "kernels/system/testing.h"
#include "offload/retrieval/key_scorer.h"
#include "offload/retrieval/mean_scorer.h"
#include "offload/retrieval/testing.h"
#include "tests/setup/draws.h"

namespace tiercel::importance_selector_test {
namespace {

constexpr int kHeadDim = 16;
constexpr int64_t kContext = 300;
constexpr int64_t kBegin = 37;

// Pages of random keys, in all layers.
class Keys {
 public:
  explicit Keys(int layers, int kv_heads)
      : layout_{DType::kF32, DType::kF32, kv_heads, kHeadDim} {
    std::mt19937 random(3);
    NormalFloats normal;
    for (int layer = 0; layer < layers; ++layer) {
      std::vector<std::vector<std::byte>>& pages = bytes_.emplace_back();
      tables_.emplace_back();
      for (int page = 0; page < 3; ++page) {
        pages.emplace_back(static_cast<size_t>(layout_.PageBytes()));
        std::vector<float> values(pages.back().size() / sizeof(float));
        for (float& value : values) value = normal(random);
        std::memcpy(pages.back().data(), values.data(), pages.back().size());
        tables_.back().push_back(InPlace(pages.back().data()));
      }
    }
  }

  const KvLayout& layout() const { return layout_; }
  // The pages as seen by a step whose sequence ended at `end`.
  KvPages At(int layer, int64_t end) {
    return {.layout = layout_,
            .pages = tables_[static_cast<size_t>(layer)].data(),
            .first_page = 0,
            .num_pages = 3,
            .begin = kBegin,
            .end = end,
            .view = nullptr};
  }
  // The mean of the keys of a chunk of the sequence, as a digest has it.
  std::vector<float> MeanOf(int layer, int head, int chunk, int64_t index) {
    const int64_t first = (kBegin / chunk + index) * chunk;
    const int64_t from = std::max(first, kBegin);
    std::vector<float> sum(kHeadDim, 0.0f);
    for (int64_t p = from; p < first + chunk; ++p) {
      const StoredRow row = RowAt(At(layer, p), head, p);
      float key[kHeadDim];
      std::memcpy(key, row.k.data(), sizeof(key));
      for (size_t d = 0; d < sum.size(); ++d) sum[d] += key[d];
    }
    if (chunk == 1) return sum;
    const auto count = static_cast<float>(first + chunk - from);
    for (float& x : sum) x = F32FromF16(F16FromF32(x / count));
    return sum;
  }
  // Makes every key of the layer from `position` on longer.
  void Lengthen(int layer, int64_t position, float by) {
    for (int64_t p = position; p < 3 * kPageTokens; ++p) {
      for (int head = 0; head < layout_.kv_heads; ++head) {
        std::byte* const key =
            bytes_[static_cast<size_t>(layer)]
                  [static_cast<size_t>(p / kPageTokens)]
                      .data() +
            layout_.KOffset(head, static_cast<int>(p % kPageTokens));
        float values[kHeadDim];
        std::memcpy(values, key, sizeof(values));
        for (float& x : values) x *= by;
        std::memcpy(key, values, sizeof(values));
      }
    }
  }

 private:
  const KvLayout layout_;
  std::vector<std::vector<std::vector<std::byte>>> bytes_;
  std::vector<std::vector<DevicePtr<std::byte>>> tables_;
};

// The parameters of a selector with chunks of few positions: by keys for one,
// else by means.
struct Chosen {
  int layers;
  int heads;
  int chunk = 1;
  int64_t budget = 60;  // chunks
  float decay = 0;
  int64_t beside = 0;
  int64_t drafted = 0;
  static constexpr int64_t kSinks = 3;

  Digests::Shape DigestsOf(const Keys& keys) const {
    return {.layout = keys.layout(),
            .layers = layers,
            .heads = heads,
            .chunk = chunk,
            .begin = kBegin,
            .context = kContext,
            .norms = true};
  }
  KeyScorer::Shape KeysOf(const Keys& keys) const {
    return {.layout = keys.layout(),
            .layers = layers,
            .heads = heads,
            .begin = kBegin,
            .context = kContext};
  }
  ImportanceSelector::Shape ShapeOf(const Keys& keys) const {
    return {.layers = layers,
            .heads = heads,
            .kv_heads = keys.layout().kv_heads,
            .chunk = chunk,
            .begin = kBegin,
            .chunks = DigestsOf(keys).Chunks(),
            .sinks = kSinks,
            .budget = budget,
            .choice = {.drafted = drafted, .decay = decay, .beside = beside}};
  }
  std::unique_ptr<Selector> Make(DeviceMemory& memory, const Keys& keys) const {
    return *ImportanceSelector::Create(
        memory, ShapeOf(keys),
        chunk == 1 ? *KeyScorer::Create(memory, KeysOf(keys))
                   : *MeanScorer::Create(memory, DigestsOf(keys)));
  }
  int64_t Bytes(const Keys& keys) const {
    return ShapeOf(keys).Bytes() +
           (chunk == 1 ? KeysOf(keys).Bytes() : DigestsOf(keys).Bytes());
  }
};

// The scores of the chunks kSinks <= c < last for a query row, [heads][last -
// kSinks], which the test computes itself from the mean keys of chunks.
std::vector<float> ScoresOf(Keys& keys, int layer, const Chosen& c,
                            const float* q, int64_t last) {
  const int64_t candidates = last - Chosen::kSinks;
  const int group = c.heads / keys.layout().kv_heads;
  std::vector<float> scores;
  for (int64_t i = 0; i < c.heads * candidates; ++i) {
    const auto head = static_cast<int>(i / candidates);
    const std::vector<float> key = keys.MeanOf(layer, head / group, c.chunk,
                                               Chosen::kSinks + i % candidates);
    float dot = 0;
    for (size_t d = 0; d < key.size(); ++d) {
      dot =
          std::fma(q[static_cast<size_t>(head) * key.size() + d], key[d], dot);
    }
    scores.push_back(dot * 0.25f);
  }
  return scores;
}

// The importance of the chunks after the sinks, [kv_heads][stride].
struct Importance {
  Importance(const Keys& keys, const Chosen& c)
      : stride(c.DigestsOf(keys).Chunks()),
        of(static_cast<size_t>(keys.layout().kv_heads * stride)) {}

  // Adds a row's importance of the chunks before `last`.
  void Add(Stream& stream, Keys& keys, int layer, const Chosen& c,
           const float* q, int64_t last, float decay) {
    const std::vector<float> scores = ScoresOf(keys, layer, c, q, last);
    EXPECT_TRUE(AddImportance(stream, {.scores = InPlace(scores.data()),
                                       .scores_stride = last - Chosen::kSinks,
                                       .rows = 1,
                                       .heads = c.heads,
                                       .kv_heads = keys.layout().kv_heads,
                                       .candidates = last - Chosen::kSinks,
                                       .decay = decay,
                                       .before = InPlace(of.data()),
                                       .importance = InPlace(of.data()),
                                       .importance_stride = stride})
                    .ok());
  }
  // The Selector's choice by this importance, with a key of each chunk.
  std::vector<std::vector<int32_t>> Choice(Stream& stream, Keys& keys,
                                           int layer, const Chosen& c,
                                           int64_t chunks, float most_prior) {
    const int kv_heads = keys.layout().kv_heads;
    const int64_t candidates = chunks - Chosen::kSinks;
    std::vector<uint16_t> norms;
    for (int64_t i = 0; i < kv_heads * candidates; ++i) {
      float square = 0;
      for (const float x :
           keys.MeanOf(layer, static_cast<int>(i / candidates), c.chunk,
                       Chosen::kSinks + i % candidates)) {
        square = std::fma(x, x, square);
      }
      norms.push_back(F16FromF32(std::sqrt(square)));
    }
    const int64_t picked = c.budget - Chosen::kSinks;
    std::vector<int32_t> out(static_cast<size_t>(kv_heads * picked));
    EXPECT_TRUE(
        Select(stream,
               {.importance = InPlace(of.data()),
                .importance_stride = stride,
                .norms = InPlace(norms.data()),
                .norms_stride = candidates,
                .kv_heads = kv_heads,
                .candidates = candidates,
                .budget = picked,
                .most_prior = most_prior,
                .reach = c.beside > 0 ? (c.beside + c.chunk - 1) / c.chunk
                                      : 16 / c.chunk,
                .suppression = c.beside > 0 ? -0.999f : 1.0f,
                .exclusivity = 0.85f,
                .out = InPlace(out.data())})
            .ok());
    std::vector<std::vector<int32_t>> chosen;
    for (int head = 0; head < kv_heads; ++head) {
      std::vector<int32_t>& one = chosen.emplace_back(3);
      std::iota(one.begin(), one.end(), 0);
      for (int64_t i = 0; i < picked; ++i) {
        one.push_back(3 + out[static_cast<size_t>(head * picked + i)]);
      }
    }
    return chosen;
  }

  int64_t stride;
  std::vector<float> of;
};

// The choice by these query rows alone, without earlier importance.
std::vector<std::vector<int32_t>> Expected(Stream& stream, Keys& keys,
                                           int layer, const Chosen& c,
                                           const Selector::QueryRows& by,
                                           int64_t chunks, float most_prior) {
  Importance importance(keys, c);
  for (int64_t row = 0; row < by.rows; ++row) {
    importance.Add(stream, keys, layer, c,
                   HostAddress(by.q) + row * by.row_floats, chunks,
                   /*decay=*/1);
  }
  return importance.Choice(stream, keys, layer, c, chunks, most_prior);
}

class ImportanceSelectorTest : public testing::Test {
 protected:
  std::vector<float> Queries(int64_t rows, int heads) {
    std::mt19937 random(9);
    NormalFloats normal;
    std::vector<float> q(static_cast<size_t>(rows * heads * kHeadDim));
    for (float& x : q) x = normal(random);
    return q;
  }
  std::unique_ptr<Stream> stream_ = MakeStream(DeviceKind::kCpu, 2);
  PoisonedMemory memory_;
};

TEST_F(ImportanceSelectorTest, ChoosesAsTheOpsDo) {
  struct Case {
    int heads;
    int kv_heads;
    int64_t rows;
    float prior;
    int chunk;
    int64_t budget;
    int64_t beside = 0;
  };
  for (const Case& c :
       {Case{4, 2, 1, 0.25f, 1, 60}, Case{4, 2, 5, 0.25f, 1, 60},
        Case{1, 1, 1, 0.35f, 1, 60}, Case{1, 1, 2, 0.25f, 1, 60},
        Case{4, 2, 3, 0.25f, 2, 40}, Case{4, 2, 1, 0.25f, 8, 12},
        Case{4, 2, 2, 0.25f, 32, 5}, Case{4, 2, 1, 0.25f, 1, 60, 5},
        Case{4, 2, 1, 0.25f, 2, 40, 5}, Case{4, 2, 2, 0.25f, 32, 5, 1}}) {
    Keys keys(2, c.kv_heads);
    const Chosen chosen_by = {.layers = 2,
                              .heads = c.heads,
                              .chunk = c.chunk,
                              .budget = c.budget,
                              .beside = c.beside};
    const int64_t before = memory_.used();
    auto selector = chosen_by.Make(memory_, keys);
    EXPECT_EQ(memory_.used() - before, chosen_by.Bytes(keys));
    const std::vector<float> q = Queries(c.rows, c.heads);
    const Selector::QueryRows by = {.q = InPlace(q.data()),
                                    .row_floats = c.heads * kHeadDim,
                                    .rows = c.rows,
                                    .position = kBegin + 250 - c.rows};
    const int64_t chunks = (kBegin + 230) / c.chunk - kBegin / c.chunk;
    for (int layer = 0; layer < 2; ++layer) {
      // Update is called for a prompt, not for the steps after it, then again.
      ASSERT_TRUE(
          selector->Update(*stream_, layer, keys.At(layer, kBegin), 100).ok());
      ASSERT_TRUE(
          selector->Update(*stream_, layer, keys.At(layer, kBegin + 249), 1)
              .ok());
      const KvPages kv = keys.At(layer, kBegin + 249);
      std::vector<std::vector<int32_t>> chosen;
      ASSERT_TRUE(
          selector->Choose(*stream_, layer, by, &kv, chunks, &chosen).ok());
      EXPECT_EQ(chosen,
                Expected(*stream_, keys, layer, chosen_by, by, chunks, c.prior))
          << layer << ", " << c.heads << " heads, " << c.rows << " rows, chunk "
          << c.chunk;
    }
  }
}

// A step's importance decays in each later step, and each step has the same
// weight, however many rows it has. It covers all chunks that its rows saw:
// those too new to be chosen may be chosen later. A step that does not go on,
// or whose candidates all are chosen, starts anew.
TEST_F(ImportanceSelectorTest, ImportanceDecays) {
  struct Step {
    int64_t rows;
    int64_t last;    // the position of the last row, from kBegin on
    int64_t newest;  // the first position that may not be chosen
    bool goes_on;
    float decay;  // the factor of the earlier importance
  };
  for (const int chunk : {1, 4}) {
    Keys keys(2, 2);
    const Chosen c = {.layers = 2,
                      .heads = 4,
                      .chunk = chunk,
                      .budget = 60 / chunk,
                      .decay = 0.75f};
    const auto chunk_of = [&](int64_t position) {
      return (kBegin + position) / chunk - kBegin / chunk;
    };
    const int64_t before = memory_.used();
    const auto selector = c.Make(memory_, keys);
    EXPECT_EQ(memory_.used() - before, c.Bytes(keys));
    const std::vector<float> q = Queries(4, 4);
    std::vector<Importance> importance(2, Importance(keys, c));
    for (const Step& step : {Step{2, 200, 150, false, 0},
                             {1, 220, 190, true, 0.75f / 2},
                             {1, 230, 195, true, 0.75f},
                             {3, 240, 200, true, 0.75f * 3},
                             {1, 241, 30, true, 0},
                             {1, 245, 200, true, 0},
                             {2, 249, 230, false, 0}}) {
      const int64_t chunks = chunk_of(step.newest);
      const Selector::QueryRows by = {
          .q = InPlace(q.data()),
          .row_floats = 4 * kHeadDim,
          .rows = step.rows,
          .position = kBegin + step.last + 1 - step.rows,
          .seen = nullptr,
          .goes_on = step.goes_on};
      for (int layer = 0; layer < 2; ++layer) {
        const KvPages kv = keys.At(layer, kBegin + step.last);
        ASSERT_TRUE(selector->Update(*stream_, layer, kv, 1).ok());
        std::vector<std::vector<int32_t>> chosen;
        ASSERT_TRUE(
            selector->Choose(*stream_, layer, by, &kv, chunks, &chosen).ok());
        if (chunks <= c.budget) continue;
        Importance& known = importance[static_cast<size_t>(layer)];
        if (step.decay == 0) known = Importance(keys, c);
        for (int64_t row = 0; row < step.rows; ++row) {
          known.Add(*stream_, keys, layer, c, q.data() + row * by.row_floats,
                    chunk_of(step.last + 2 - step.rows + row),
                    row == 0 && step.decay > 0 ? step.decay : 1);
        }
        EXPECT_EQ(chosen, known.Choice(*stream_, keys, layer, c, chunks, 0.25f))
            << chunk << ", " << step.last << ", " << layer;
      }
    }
  }
}

// Drafted rows choose with the others, each with the same weight as a certain
// row, and nothing of them is remembered.
TEST_F(ImportanceSelectorTest, DraftedRowsChooseOnce) {
  struct Case {
    float decay;
    int64_t certain;
    int heads;
    int kv_heads;
  };
  for (const auto& [decay, certain, heads, kv_heads] :
       {Case{0, 2, 4, 2}, Case{0.75f, 2, 4, 2}, Case{0.75f, 1, 4, 2},
        Case{0, 1, 1, 1}}) {
    Keys keys(2, kv_heads);
    const Chosen c = {
        .layers = 2, .heads = heads, .decay = decay, .drafted = 5};
    const int64_t used = memory_.used();
    const auto selector = c.Make(memory_, keys);
    EXPECT_EQ(memory_.used() - used, c.Bytes(keys));
    const std::vector<float> q = Queries(certain + c.drafted, heads);
    std::vector<Importance> importance(2, Importance(keys, c));
    int64_t end = 200;
    for (const int64_t drafted : {5, 1, 0, 5}) {
      const int64_t chunks = end - 30;
      const Selector::QueryRows by = {.q = InPlace(q.data()),
                                      .row_floats = heads * kHeadDim,
                                      .rows = certain + drafted,
                                      .position = kBegin + end,
                                      .drafted = drafted,
                                      .seen = nullptr,
                                      .goes_on = end > 200};
      for (int layer = 0; layer < 2; ++layer) {
        const KvPages kv = keys.At(layer, kBegin + end);
        ASSERT_TRUE(selector->Update(*stream_, layer, kv, by.rows).ok());
        std::vector<std::vector<int32_t>> chosen;
        ASSERT_TRUE(
            selector->Choose(*stream_, layer, by, &kv, chunks, &chosen).ok());
        Importance& known = importance[static_cast<size_t>(layer)];
        if (decay == 0) known = Importance(keys, c);
        for (int64_t row = 0; row < certain; ++row) {
          known.Add(*stream_, keys, layer, c, q.data() + row * by.row_floats,
                    decay > 0 ? end + row + 1 : chunks,
                    row == 0 && by.goes_on && decay > 0 ? decay : 1);
        }
        Importance now = known;
        for (int64_t row = certain; row < by.rows; ++row) {
          now.Add(*stream_, keys, layer, c, q.data() + row * by.row_floats,
                  decay > 0 ? end + row + 1 : chunks, 1);
        }
        const float prior = by.rows * heads == 1 ? 0.35f : 0.25f;
        EXPECT_EQ(chosen, now.Choice(*stream_, keys, layer, c, chunks, prior))
            << decay << ", " << drafted << ", " << layer;
      }
      end += certain;
    }
  }
}

TEST_F(ImportanceSelectorTest, FewPositionsAreAllChosen) {
  Keys keys(1, 2);
  auto selector = Chosen{.layers = 1, .heads = 4}.Make(memory_, keys);
  const std::vector<float> q = Queries(1, 4);
  const Selector::QueryRows by = {.q = InPlace(q.data()),
                                  .row_floats = 4 * kHeadDim,
                                  .rows = 1,
                                  .position = kBegin + 249};
  const KvPages kv = keys.At(0, kBegin + 250);
  std::vector<std::vector<int32_t>> chosen;
  for (const int64_t chunks : {0, 1, 3, 59, 60}) {
    ASSERT_TRUE(selector->Choose(*stream_, 0, by, &kv, chunks, &chosen).ok());
    std::vector<int32_t> all(static_cast<size_t>(chunks));
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(chosen, (std::vector<std::vector<int32_t>>{all, all}));
  }
  // A choice by keys needs the pages, one by digests does not.
  EXPECT_FALSE(selector->Choose(*stream_, 0, by, nullptr, 100, &chosen).ok());
  auto means = Chosen{.layers = 1, .heads = 4, .chunk = 2}.Make(memory_, keys);
  ASSERT_TRUE(means->Update(*stream_, 0, keys.At(0, kBegin), 250).ok());
  EXPECT_TRUE(means->Choose(*stream_, 0, by, nullptr, 100, &chosen).ok());
}

// Coverage is measured for the last certain row, and changes no choice.
TEST_F(ImportanceSelectorTest, CoverageIsTheShareOfWhatWasSeen) {
  for (const auto& [rows, drafted] : {std::pair(1, 0), {3, 0}, {3, 2}}) {
    Keys keys(1, 2);
    const auto selector = Chosen{.layers = 1, .heads = 4}.Make(memory_, keys);
    const std::vector<float> q = Queries(rows + drafted, 4);
    const KvPages kv = keys.At(0, kBegin + 249);
    ASSERT_TRUE(selector->Update(*stream_, 0, kv, 1 + drafted).ok());
    Selector::QueryRows by = {.q = InPlace(q.data()),
                              .row_floats = 4 * kHeadDim,
                              .rows = rows + drafted,
                              .position = kBegin + 250 - rows,
                              .drafted = drafted};
    std::vector<std::vector<int32_t>> expected;
    ASSERT_TRUE(selector->Choose(*stream_, 0, by, &kv, 230, &expected).ok());
    EXPECT_EQ(selector->coverage(), std::nullopt);

    const std::vector<std::vector<int32_t>> kept = {{0, 1, 2, 77, 30},
                                                    {2, 0, 1, 199, 144}};
    const int32_t* const of_heads[] = {kept[0].data(), kept[1].data()};
    const Selector::Seen seen = {
        .kept = of_heads, .num_kept = 5, .newest = 200};
    by.seen = &seen;
    std::vector<std::vector<int32_t>> chosen;
    ASSERT_TRUE(selector->Choose(*stream_, 0, by, &kv, 230, &chosen).ok());
    EXPECT_EQ(chosen, expected);

    double sum = 0;
    for (int head = 0; head < 4; ++head) {
      double all = 0;
      double of_seen = 0;
      for (int64_t j = 0; j < 250; ++j) {
        const std::vector<float> key = keys.MeanOf(0, head / 2, 1, j);
        double dot = 0;
        for (size_t d = 0; d < key.size(); ++d) {
          dot += double{q[static_cast<size_t>((rows - 1) * by.row_floats +
                                              head * kHeadDim) +
                          d]} *
                 double{key[d]};
        }
        const double weight = std::exp(dot / 4);
        const auto& one = kept[static_cast<size_t>(head / 2)];
        all += weight;
        if (j >= 200 || std::find(one.begin(), one.end(), j) != one.end()) {
          of_seen += weight;
        }
      }
      sum += of_seen / all;
    }
    ASSERT_NE(selector->coverage(), std::nullopt);
    EXPECT_NEAR(*selector->coverage(), sum / 4, 1e-5);
    // It does not depend on the choice, even if everything is chosen.
    for (const int64_t chunks : {0, 2, 60}) {
      ASSERT_TRUE(selector->Choose(*stream_, 0, by, &kv, chunks, &chosen).ok());
      ASSERT_NE(selector->coverage(), std::nullopt) << chunks;
      EXPECT_NEAR(*selector->coverage(), sum / 4, 1e-5);
    }
  }
  // Means give no coverage of single positions.
  Keys keys(1, 2);
  const auto means =
      Chosen{.layers = 1, .heads = 4, .chunk = 2, .budget = 9}.Make(memory_,
                                                                    keys);
  const std::vector<float> q = Queries(1, 4);
  const KvPages kv = keys.At(0, kBegin + 249);
  ASSERT_TRUE(means->Update(*stream_, 0, kv, 1).ok());
  const Selector::Seen nothing = {.kept = nullptr, .num_kept = 0, .newest = 9};
  std::vector<std::vector<int32_t>> chosen;
  ASSERT_TRUE(means
                  ->Choose(*stream_, 0,
                           {.q = InPlace(q.data()),
                            .row_floats = 4 * kHeadDim,
                            .rows = 1,
                            .position = kBegin + 249,
                            .seen = &nothing},
                           &kv, 100, &chosen)
                  .ok());
  EXPECT_EQ(means->coverage(), std::nullopt);
}

// Positions that are rewritten after a truncation get new norms and means, and
// a copy is independent.
TEST_F(ImportanceSelectorTest, WhatIsWrittenAnewIsMeasuredAnew) {
  for (const int chunk : {1, 4}) {
    Keys keys(1, 2);
    const Chosen by_few = {
        .layers = 1, .heads = 4, .chunk = chunk, .budget = 60 / chunk};
    auto selector = by_few.Make(memory_, keys);
    const std::vector<float> q = Queries(1, 4);
    const Selector::QueryRows by = {.q = InPlace(q.data()),
                                    .row_floats = 4 * kHeadDim,
                                    .rows = 1,
                                    .position = kBegin + 249};
    const int64_t chunks = (kBegin + 230) / chunk - kBegin / chunk;
    const auto choose = [&](Selector& one) {
      std::vector<std::vector<int32_t>> chosen;
      const KvPages kv = keys.At(0, kBegin + 249);
      EXPECT_TRUE(one.Update(*stream_, 0, kv, 1).ok());
      EXPECT_TRUE(one.Choose(*stream_, 0, by, &kv, chunks, &chosen).ok());
      return chosen;
    };
    const auto expected = [&] {
      return Expected(*stream_, keys, 0, by_few, by, chunks, 0.25f);
    };
    EXPECT_EQ(choose(*selector), expected());
    auto copy = *selector->Copy(memory_);
    keys.Lengthen(0, kBegin + 120, 30);
    copy->Truncate(kBegin + 120);
    EXPECT_EQ(choose(*copy), expected());
    // The original was not truncated.
    EXPECT_NE(choose(*selector), expected());
  }
}

}  // namespace
}  // namespace tiercel::importance_selector_test
