// Positions chosen by their keys: the ops put together, the norms that are kept
// for them, and what is forgotten.

#include "offload/view/key_chooser.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/attention/evidence.h"
#include "kernels/attention/key_scores.h"
#include "kernels/attention/selector.h"
#include "kernels/machine/testing.h"
#include "kernels/number/half.h"
#include "offload/view/testing.h"

namespace tiercel::key_chooser_test {
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
    std::normal_distribution<float> normal;
    for (int layer = 0; layer < layers; ++layer) {
      std::vector<std::vector<std::byte>>& pages = bytes_.emplace_back();
      tables_.emplace_back();
      for (int page = 0; page < 3; ++page) {
        pages.emplace_back(static_cast<size_t>(layout_.PageBytes()));
        std::vector<float> values(pages.back().size() / sizeof(float));
        for (float& value : values) value = normal(random);
        std::memcpy(pages.back().data(), values.data(), pages.back().size());
        tables_.back().push_back(pages.back().data());
      }
    }
  }

  const KvLayout& layout() const { return layout_; }
  // As a step of `rows` rows sees them whose sequence ended at `end`.
  KvPages At(int layer, int64_t end) {
    return {.layout = layout_,
            .pages = tables_[static_cast<size_t>(layer)].data(),
            .first_page = 0,
            .num_pages = 3,
            .begin = kBegin,
            .end = end,
            .view = nullptr};
  }
  double NormOf(int layer, int head, int64_t position) const {
    const auto page = static_cast<size_t>(position / kPageTokens);
    const auto cell = static_cast<int>(position % kPageTokens);
    float key[kHeadDim];
    std::memcpy(key,
                bytes_[static_cast<size_t>(layer)][page].data() +
                    layout_.KOffset(head, cell),
                sizeof(key));
    double sum = 0;
    for (const float x : key) sum += double{x} * double{x};
    return std::sqrt(sum);
  }
  // Every key of the layer from `position` on becomes longer.
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
  std::vector<std::vector<std::byte*>> tables_;
};

KeyChooser::Shape ShapeOf(const Keys& keys, int layers, int heads,
                          int64_t budget) {
  return {.layout = keys.layout(),
          .layers = layers,
          .heads = heads,
          .begin = kBegin,
          .context = kContext,
          .sinks = 3,
          .budget = budget,
          .choice = {}};
}

// What the ops say, one after the other, with norms of the test's own.
std::vector<std::vector<int32_t>> Expected(Stream& stream, Keys& keys,
                                           int layer, int heads,
                                           const KeyChooser::Asking& by,
                                           int64_t chunks, int64_t budget,
                                           float most_prior) {
  const int kv_heads = keys.layout().kv_heads;
  const int64_t candidates = chunks - 3;
  std::vector<float> scores(static_cast<size_t>(by.rows * heads * candidates));
  const KvPages kv = keys.At(layer, kBegin + kContext);
  EXPECT_TRUE(KeyScores(stream, {.q = by.q,
                                 .q_stride = heads * kHeadDim,
                                 .rows = by.rows,
                                 .heads = heads,
                                 .scale = 0.25f,
                                 .layout = kv.layout,
                                 .pages = kv.pages,
                                 .first_page = 0,
                                 .num_pages = 3,
                                 .position = by.position,
                                 .first = kBegin + 3,
                                 .last = kBegin + chunks,
                                 .out = scores.data()})
                  .ok());
  std::vector<float> evidence(static_cast<size_t>(kv_heads * candidates));
  EXPECT_TRUE(AddEvidence(stream, {.scores = scores.data(),
                                   .rows = by.rows,
                                   .heads = heads,
                                   .kv_heads = kv_heads,
                                   .candidates = candidates,
                                   .evidence = evidence.data()})
                  .ok());
  std::vector<uint16_t> norms;
  for (int head = 0; head < kv_heads; ++head) {
    for (int64_t i = 0; i < candidates; ++i) {
      norms.push_back(F16FromF32(
          static_cast<float>(keys.NormOf(layer, head, kBegin + 3 + i))));
    }
  }
  std::vector<int32_t> out(static_cast<size_t>(kv_heads * (budget - 3)));
  EXPECT_TRUE(Select(stream, {.evidence = evidence.data(),
                              .norms = norms.data(),
                              .norms_stride = candidates,
                              .kv_heads = kv_heads,
                              .candidates = candidates,
                              .budget = budget - 3,
                              .most_prior = most_prior,
                              .reach = 16,
                              .suppression = 1,
                              .exclusivity = 0.85f,
                              .out = out.data()})
                  .ok());
  std::vector<std::vector<int32_t>> chosen;
  for (int head = 0; head < kv_heads; ++head) {
    std::vector<int32_t>& one = chosen.emplace_back(3);
    std::iota(one.begin(), one.end(), 0);
    for (int64_t i = 0; i < budget - 3; ++i) {
      one.push_back(3 + out[static_cast<size_t>(head * (budget - 3) + i)]);
    }
  }
  return chosen;
}

class KeyChooserTest : public testing::Test {
 protected:
  std::vector<float> Queries(int64_t rows, int heads) {
    std::mt19937 random(9);
    std::normal_distribution<float> normal;
    std::vector<float> q(static_cast<size_t>(rows * heads * kHeadDim));
    for (float& x : q) x = normal(random);
    return q;
  }
  std::unique_ptr<Stream> stream_ = MakeStream(Device::kCpu, 2);
  PoisonedMemory memory_;
};

TEST_F(KeyChooserTest, ChoosesAsTheOpsDo) {
  struct Case {
    int heads;
    int kv_heads;
    int64_t rows;
    float prior;
  };
  for (const Case& c : {Case{4, 2, 1, 0.25f}, Case{4, 2, 5, 0.25f},
                        Case{1, 1, 1, 0.35f}, Case{1, 1, 2, 0.25f}}) {
    Keys keys(2, c.kv_heads);
    const KeyChooser::Shape shape = ShapeOf(keys, 2, c.heads, 60);
    const int64_t before = memory_.used();
    auto chooser = *KeyChooser::Create(memory_, shape);
    EXPECT_EQ(memory_.used() - before, shape.Bytes());
    const std::vector<float> q = Queries(c.rows, c.heads);
    const KeyChooser::Asking by = {
        .q = q.data(), .rows = c.rows, .position = kBegin + 250 - c.rows};
    for (int layer = 0; layer < 2; ++layer) {
      // A prompt, then steps that nobody showed, then one that was.
      ASSERT_TRUE(
          chooser->Update(*stream_, layer, keys.At(layer, kBegin), 100).ok());
      ASSERT_TRUE(
          chooser->Update(*stream_, layer, keys.At(layer, kBegin + 249), 1)
              .ok());
      const KvPages kv = keys.At(layer, kBegin + 249);
      std::vector<std::vector<int32_t>> chosen;
      ASSERT_TRUE(chooser->Choose(*stream_, layer, by, &kv, 230, &chosen).ok());
      EXPECT_EQ(chosen,
                Expected(*stream_, keys, layer, c.heads, by, 230, 60, c.prior))
          << layer << ", " << c.heads << " heads, " << c.rows << " rows";
    }
  }
}

TEST_F(KeyChooserTest, FewPositionsAreAllChosen) {
  Keys keys(1, 2);
  auto chooser = *KeyChooser::Create(memory_, ShapeOf(keys, 1, 4, 60));
  const std::vector<float> q = Queries(1, 4);
  const KvPages kv = keys.At(0, kBegin + 250);
  for (const int64_t chunks : {0, 1, 3, 59, 60}) {
    std::vector<std::vector<int32_t>> chosen;
    ASSERT_TRUE(
        chooser
            ->Choose(*stream_, 0,
                     {.q = q.data(), .rows = 1, .position = kBegin + 249}, &kv,
                     chunks, &chosen)
            .ok());
    std::vector<int32_t> all(static_cast<size_t>(chunks));
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(chosen, (std::vector<std::vector<int32_t>>{all, all}));
  }
  std::vector<std::vector<int32_t>> chosen;
  EXPECT_FALSE(chooser
                   ->Choose(*stream_, 0, {q.data(), 1, kBegin + 249}, nullptr,
                            100, &chosen)
                   .ok());
}

// What is written over after a truncation is measured anew, and a copy goes its
// own way.
TEST_F(KeyChooserTest, WhatIsWrittenAnewIsMeasuredAnew) {
  Keys keys(1, 2);
  auto chooser = *KeyChooser::Create(memory_, ShapeOf(keys, 1, 4, 60));
  const std::vector<float> q = Queries(1, 4);
  const KeyChooser::Asking by = {
      .q = q.data(), .rows = 1, .position = kBegin + 249};
  const auto choose = [&](Chooser& one) {
    std::vector<std::vector<int32_t>> chosen;
    const KvPages kv = keys.At(0, kBegin + 249);
    EXPECT_TRUE(one.Update(*stream_, 0, kv, 1).ok());
    EXPECT_TRUE(one.Choose(*stream_, 0, by, &kv, 230, &chosen).ok());
    return chosen;
  };
  const auto expected = [&] {
    return Expected(*stream_, keys, 0, 4, by, 230, 60, 0.25f);
  };
  EXPECT_EQ(choose(*chooser), expected());
  auto copy = *chooser->Copy(memory_);
  keys.Lengthen(0, kBegin + 120, 30);
  copy->Truncate(kBegin + 120);
  EXPECT_EQ(choose(*copy), expected());
  // Nobody told the other.
  EXPECT_NE(choose(*chooser), expected());
}

}  // namespace
}  // namespace tiercel::key_chooser_test
