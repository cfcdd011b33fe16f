#include "runtime/pass/pass.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "offload/kv/in_place_kv.h"
#include "tests/tiers.h"

namespace tiercel::pass_test {
namespace {

constexpr DeviceKind kCpu = DeviceKind::kCpu;

ModelConfig Shape(int layers, int heads, int head_dim) {
  ModelConfig config;
  config.layers = layers;
  config.heads = heads;
  config.head_dim = head_dim;
  return config;
}

TEST(PromptRowsAtOnceTest, AreFewWhereARowTakesLong) {
  const ModelConfig small = Shape(30, 9, 64);
  const ModelConfig large = Shape(32, 32, 128);
  EXPECT_EQ(PromptRowsAtOnce(small, 100'000'000, kCpu, 2, 0), 512);
  // A layer has 10 MB of weights; each thread multiplies 1 GiB in the time.
  EXPECT_EQ(PromptRowsAtOnce(small, 300'000'000, kCpu, 1, 0), 128);
  EXPECT_EQ(PromptRowsAtOnce(small, 300'000'000, kCpu, 2, 0), 214);
  EXPECT_EQ(PromptRowsAtOnce(small, 300'000'000, kCpu, 16, 0), 512);
  EXPECT_EQ(PromptRowsAtOnce(large, 7'000'000'000, kCpu, 2, 0), 128);
  EXPECT_EQ(PromptRowsAtOnce(large, 7'000'000'000, kCpu, 32, 0), 157);
  // After 8,000 positions a row reads 65,536,000 elements of K and V, of 6 GiB.
  EXPECT_EQ(PromptRowsAtOnce(large, 7'000'000'000, kCpu, 2, 8000), 98);
  EXPECT_EQ(PromptRowsAtOnce(large, 7'000'000'000, kCpu, 2, 128 * 1024), 64);
  EXPECT_EQ(PromptRowsAtOnce(large, 7'000'000'000, DeviceKind::kCuda, 2, 0),
            1024);
}

// The count never rises with `before`, since memory is taken for the first.
TEST(PromptRowsAtOnceTest, FallWithThoseBefore) {
  const ModelConfig config = Shape(30, 9, 64);
  int64_t last = PromptRowsAtOnce(config, 100'000'000, kCpu, 2, 0);
  for (int64_t before = 0; before < 2'000'000; before += 999) {
    const int64_t rows = PromptRowsAtOnce(config, 100'000'000, kCpu, 2, before);
    ASSERT_LE(rows, last) << before;
    ASSERT_GE(rows, 64) << before;
    last = rows;
  }
  EXPECT_EQ(last, 64);
}

constexpr auto kGoOn = [] { return false; };

// An observer that records the rows it sees.
class Notes final : public StepObserver {
 public:
  absl::Status BeginStep(int64_t, int64_t, bool, Cancelled) override {
    return absl::OkStatus();
  }
  absl::Status KeepQueries(Stream&, int layer, int64_t first_row, int64_t rows,
                           DevicePtr<const float> q) override {
    EXPECT_NE(q, nullptr);
    seen.emplace_back(layer, first_row, rows);
    return absl::OkStatus();
  }
  absl::Status AfterLayer(Stream&, int layer, const KvPages& kv) override {
    EXPECT_NE(kv.pages[0], nullptr);
    seen.emplace_back(layer, -1, -1);
    return layer == refused ? DeviceError("copy_failed", "as asked")
                            : absl::OkStatus();
  }
  void Commit(int64_t) override {}
  void Abandon() override {}
  void Truncate(int64_t) override {}

  using Seen = std::tuple<int, int64_t, int64_t>;  // layer, first row, rows
  std::vector<Seen> seen;
  int refused = -1;
};

// A prompt of 700 rows through the layers of a model.
class PassTest : public testing::Test {
 protected:
  static constexpr int64_t kRows = 700;

  PassTest()
      : model_(OpenModel({.path = Deepened("llama_chat")})),
        config_(model_->config),
        ids_(RandomIds(kRows, config_.vocab)),
        kv_(std::make_shared<PagePool>(
                KvLayout{DType::kF16, DType::kF16, config_.kv_heads,
                         config_.head_dim},
                config_.layers, kRows / kPageTokens + 2),
            /*begin=*/0),
        stream_(*Stream::Create({.threads = 2})),
        decoder_(config_, *model_->weights, model_->options.compute,
                 SystemMemory()),
        hidden_(static_cast<size_t>(kRows * config_.hidden)),
        states_(InPlace(hidden_.data()), config_.hidden) {}

  void Begin() {
    ASSERT_TRUE(
        kv_.BeginStep(kRows, Phase::kPrefill, View::Full(), kGoOn).ok());
    ASSERT_TRUE(
        decoder_.BeginStep(*stream_, kRows, 0, /*of_prompt=*/true).ok());
  }
  // `weights`: bytes of weights per token, which limit the rows that pass at
  // once. `before`: positions that precede the rows, which limit them too.
  absl::Status Run(int layers, PassProgress progress, PassPoint* point,
                   int64_t weights = 0, int64_t before = 0) {
    return RunPass({.kv = kv_,
                    .rows = kRows,
                    .before = before,
                    .layers = layers,
                    .weight_bytes_per_token = weights,
                    .hidden = states_,
                    .ids = ids_.data(),
                    .seen_by = &notes_},
                   decoder_, *stream_, progress, kGoOn, point);
  }

  const std::unique_ptr<Model> model_;
  const ModelConfig& config_;
  const std::vector<int32_t> ids_;
  InPlaceKv kv_;
  const std::unique_ptr<Stream> stream_;
  Decoder decoder_;
  std::vector<float> hidden_;
  WholeStates states_;
  Notes notes_;
};

TEST_F(PassTest, EveryRowPassesALayerBeforeAnyEntersTheNext) {
  Begin();
  std::vector<uint64_t> done;
  PassPoint point;
  ASSERT_TRUE(Run(
                  3,
                  [&](uint64_t now, uint64_t total) {
                    EXPECT_EQ(total, 3u * kRows);
                    done.push_back(now);
                    return true;
                  },
                  &point)
                  .ok());
  // The weights are light: 512 rows pass at once.
  EXPECT_EQ(done, (std::vector<uint64_t>{0, 512, 700, 1212, 1400, 1912, 2100}));
  EXPECT_EQ(notes_.seen, (std::vector<Notes::Seen>{{0, 0, 512},
                                                   {0, 512, 188},
                                                   {0, -1, -1},
                                                   {1, 0, 512},
                                                   {1, 512, 188},
                                                   {1, -1, -1},
                                                   {2, 0, 512},
                                                   {2, 512, 188},
                                                   {2, -1, -1}}));
  EXPECT_EQ(point.layer, 2);
  EXPECT_EQ(point.row, kRows);
}

// Above the first layers only the ranges of deep rows go on, from where the
// pass was stopped, too.
TEST_F(PassTest, OnlyDeepRowsPassTheLayersAbove) {
  constexpr Notes::Seen kEnd = {1, -1, -1};
  const struct {
    int64_t from;
    std::vector<Notes::Seen> seen;
    std::vector<uint64_t> done;
  } cases[] = {
      {0, {{1, 0, 1}, {1, 600, 100}, kEnd}, {700, 701, 801}},
      {1, {{1, 600, 100}, kEnd}, {701, 801}},
      {650, {{1, 650, 50}, kEnd}, {751, 801}},
  };
  for (const auto& c : cases) {
    Begin();
    notes_.seen.clear();
    PassPoint point = {.layer = 1, .row = c.from};
    std::vector<uint64_t> done;
    const auto progress = [&](uint64_t now, uint64_t total) {
      EXPECT_EQ(total, kRows + 101u);
      done.push_back(now);
      return true;
    };
    ASSERT_TRUE(RunPass({.kv = kv_,
                         .rows = kRows,
                         .before = 0,
                         .layers = 2,
                         .deep = {{0, 1}, {600, kRows}},
                         .shallow_layers = 1,
                         .weight_bytes_per_token = 0,
                         .hidden = states_,
                         .ids = ids_.data(),
                         .seen_by = &notes_},
                        decoder_, *stream_, progress, kGoOn, &point)
                    .ok());
    EXPECT_EQ(notes_.seen, c.seen);
    EXPECT_EQ(done, c.done);
    kv_.Abandon();
  }
}

// An expert sees a quarter of the rows, so there are four times as many.
TEST_F(PassTest, MoreRowsPassAtOnceThroughExperts) {
  ModelConfig config = config_;
  const auto at_once = [&] {
    return PromptRowsAtOnce(config, /*weight_bytes_per_token=*/int64_t{1} << 40,
                            kCpu, /*threads=*/1, /*before=*/0);
  };
  const int64_t dense = at_once();
  config.experts = {.count = 8, .used = 2, .ffn = 64};
  EXPECT_EQ(at_once(), 4 * dense);
  config.experts.count = 1024;
  EXPECT_EQ(at_once(), 512);  // the most of any model
}

// A row attends to the positions before the pass and to the pass's earlier
// rows.
TEST_F(PassTest, FewerRowsPassAtOnceAfterMore) {
  const auto at_once = [&](int64_t before) {
    return PromptRowsAtOnce(config_, /*weight_bytes_per_token=*/0, kCpu,
                            stream_->pool().num_threads(), before);
  };
  // The largest `before` for which 100 rows pass at once.
  int64_t before = 0;
  for (int64_t step = int64_t{1} << 40; step > 0; step /= 2) {
    if (at_once(before + step) >= 100) before += step;
  }
  ASSERT_EQ(at_once(before), 100);
  ASSERT_EQ(at_once(before + 1), 99);
  Begin();
  std::vector<uint64_t> done;
  PassPoint point;
  ASSERT_TRUE(Run(
                  1,
                  [&](uint64_t now, uint64_t) {
                    done.push_back(now);
                    return true;
                  },
                  &point, /*weights=*/0, before)
                  .ok());
  EXPECT_EQ(done,
            (std::vector<uint64_t>{0, 100, 199, 298, 397, 496, 595, 694, 700}));
}

// The bytes are the same wherever the pass is stopped, and however many rows
// pass at once.
TEST_F(PassTest, GoesOnWhereItWasStopped) {
  Begin();
  PassPoint whole;
  ASSERT_TRUE(Run(config_.layers, kNoProgress, &whole).ok());
  kv_.Abandon();
  const std::vector<float> expected = hidden_;
  notes_.seen.clear();

  Begin();
  PassPoint point;
  int stops = 0;
  absl::Status status = CancelledError();
  while (ClassOf(status) == ErrorClass::kCancelled) {
    uint64_t begun = 0;
    status = Run(
        config_.layers, [&](uint64_t, uint64_t) { return begun++ < 2; }, &point,
        /*weights=*/int64_t{1} << 40);
    ++stops;
  }
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_GT(stops, 3 * config_.layers);
  EXPECT_EQ(std::memcmp(hidden_.data(), expected.data(),
                        expected.size() * sizeof(float)),
            0);
  int64_t rows = 0;
  for (const auto& [layer, first_row, count] : notes_.seen) {
    if (count > 0) rows += count;
  }
  EXPECT_EQ(rows, config_.layers * kRows);
}

TEST_F(PassTest, EndsWhereTheObserverFails) {
  Begin();
  notes_.refused = 1;
  PassPoint point;
  EXPECT_EQ(CodeOf(Run(config_.layers, kNoProgress, &point)), "copy_failed");
  EXPECT_EQ(std::get<0>(notes_.seen.back()), 1);
}

}  // namespace
}  // namespace tiercel::pass_test
